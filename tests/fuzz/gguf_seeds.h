// Model files of a few kilobytes to begin with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace knap::fuzz {

// Whole models with the weights of one layer, of several architectures and types.
std::vector<std::string> tiny_models();
// The metadata of a model of every shape that `knap make-model` knows a tiny one of, and of the
// files in models/, without tensors.
std::vector<std::string> model_headers();
// Vocabularies without weights, by the tokenizers that knap runs.
std::vector<std::string> vocabularies();

}  // namespace knap::fuzz
