#include "model/weight_type.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace knap {
namespace {

constexpr ggml_type kWeightTypes[] = {
    GGML_TYPE_F32,     GGML_TYPE_F16,   GGML_TYPE_BF16,    GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1,    GGML_TYPE_Q5_0,  GGML_TYPE_Q5_1,    GGML_TYPE_Q2_K,   GGML_TYPE_Q3_K,
    GGML_TYPE_Q4_K,    GGML_TYPE_Q5_K,  GGML_TYPE_Q6_K,    GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS,
    GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S, GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S,
    GGML_TYPE_IQ1_S,   GGML_TYPE_IQ1_M, GGML_TYPE_TQ1_0,   GGML_TYPE_TQ2_0,  GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,   GGML_TYPE_Q1_0,  GGML_TYPE_Q2_0,
};

}  // namespace

bool is_weight_type(ggml_type type) {
    return std::find(std::begin(kWeightTypes), std::end(kWeightTypes), type) !=
           std::end(kWeightTypes);
}

std::string type_label(ggml_type type) {
    std::string label = ggml_type_name(type);
    std::transform(label.begin(), label.end(), label.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return label;
}

}  // namespace knap
