// How deep a chat template nests, told before llama-common parses it: its parser and its
// interpreter descend into a template recursively, and a file of a few kilobytes exhausts their
// stack.
#pragma once

#include <string>

namespace knap {

// Throws knap::Error when brackets, blocks or parts of an expression nest deeper than in any real
// template. A text that is no template is left to the parser.
void check_template_nesting(const std::string& source);

}  // namespace knap
