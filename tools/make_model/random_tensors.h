// The tensors that a converter would write for a checkpoint of a given shape, in file order, each
// with the distribution of its random values. Which there are, and their sizes, is said by the
// table of the architecture (model/tensor_table).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"

#include "tools/make_model/shapes.h"
#include "tools/make_model/weight_recipe.h"

namespace knap {

struct RandomTensor {
    std::string name = {};
    ggml_type type = GGML_TYPE_F32;
    std::int64_t n_in = 0;      // values per row
    std::int64_t n_rows = 1;    // of all planes; 1: a vector
    std::int64_t n_planes = 1;  // matrices of experts
    float mean = 0.0f;
    float deviation = 0.0f;
    std::vector<float> values = {};  // if not empty: these n_in values instead of random ones

    bool is_matrix() const { return n_rows > 1; }
};

// Throws knap::Error when a matrix has rows that its type cannot store in whole blocks.
std::vector<RandomTensor> declare_random_tensors(const ModelShape& shape,
                                                 const WeightRecipe& recipe);

}  // namespace knap
