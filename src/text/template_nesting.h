// Checks how deep the text of a chat template nests before llama-common parses it: its parser and
// its interpreter descend into it recursively, and a file of a few kilobytes exhausts their stack.
// What a template does while it runs, such as macros that call themselves, is bounded by the stack
// alone (stack_guard.h).
#pragma once

#include <string>

namespace knap {

// Throws knap::Error when brackets, blocks or parts of an expression nest deeper than in any real
// template. A text that is no template is left to the parser.
void check_template_nesting(const std::string& source);

}  // namespace knap
