#include "tools/make_model/weight_recipe.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"

namespace knap {

namespace {

struct NamedType {
    std::string_view name;
    ggml_type base;
    ggml_type boosted;
    std::uint32_t file_type;
    std::optional<ggml_type> experts = std::nullopt;

    bool is_mixture() const { return base != boosted || experts.has_value(); }
};

constexpr NamedType plain(std::string_view name, ggml_type type, std::uint32_t file_type) {
    return {name, type, type, file_type};
}

constexpr NamedType kTypes[] = {
    plain("F32", GGML_TYPE_F32, 0),
    plain("F16", GGML_TYPE_F16, 1),
    plain("BF16", GGML_TYPE_BF16, 32),
    plain("Q4_0", GGML_TYPE_Q4_0, 2),
    plain("Q4_1", GGML_TYPE_Q4_1, 3),
    plain("Q5_0", GGML_TYPE_Q5_0, 8),
    plain("Q5_1", GGML_TYPE_Q5_1, 9),
    plain("Q8_0", GGML_TYPE_Q8_0, 7),
    plain("Q2_K", GGML_TYPE_Q2_K, 10),
    plain("Q3_K", GGML_TYPE_Q3_K, 12),
    plain("Q4_K", GGML_TYPE_Q4_K, 14),
    {"Q4_K_M", GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, 15},
    plain("Q5_K", GGML_TYPE_Q5_K, 16),
    plain("Q6_K", GGML_TYPE_Q6_K, 18),
    plain("IQ4_NL", GGML_TYPE_IQ4_NL, 25),
    plain("IQ4_XS", GGML_TYPE_IQ4_XS, 30),
    plain("MXFP4", GGML_TYPE_MXFP4, 38),
    {"MXFP4_MOE", GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, 38, GGML_TYPE_MXFP4},
};

bool is_same_name(std::string_view a, std::string_view b) {
    const auto upper = [](unsigned char c) { return std::toupper(c); };
    return std::ranges::equal(a, b, {}, upper, upper);
}

bool needs_importance_matrix(std::string_view name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const auto type = ggml_type(i);
        const char* type_name = ggml_type_name(type);
        if (type_name != nullptr && is_same_name(type_name, name)) {
            return ggml_quantize_requires_imatrix(type);
        }
    }
    return false;
}

const NamedType& find_type(std::string_view flag, std::string_view name) {
    const auto type = std::ranges::find_if(
        kTypes, [&](const NamedType& candidate) { return is_same_name(candidate.name, name); });
    if (type != std::end(kTypes)) {
        return *type;
    }
    if (needs_importance_matrix(name)) {
        fail(flag, ": ", name, " needs an importance matrix, which random weights do not have; ",
             "expected one of ", weight_type_names());
    }
    fail(flag, ": expected one of ", weight_type_names(), "; found '", name, "'");
}

ggml_type find_head_type(std::string_view name) {
    const NamedType& type = find_type("--head-type", name);
    if (type.is_mixture()) {
        fail("--head-type: expected a single type, found ", name, ", which is a mixture");
    }
    return type.base;
}

bool is_boosted_layer(int layer, int n_layers) {
    const int eighth = n_layers / 8;
    return layer < eighth || layer >= n_layers - eighth || (layer - eighth) % 3 == 2;
}

}  // namespace

ggml_type WeightRecipe::sensitive_type(int layer, int n_layers) const {
    return is_boosted_layer(layer, n_layers) ? boosted : base;
}

WeightRecipe parse_weight_recipe(std::string_view type,
                                 std::string_view head_type,
                                 bool has_tied_head) {
    const NamedType& named = find_type("--type", type);
    WeightRecipe recipe{.base = named.base,
                        .boosted = named.boosted,
                        .embedding = has_tied_head ? named.boosted : named.base,
                        .head = named.boosted,
                        .experts = named.experts,
                        .file_type = named.file_type};
    if (!head_type.empty()) {
        recipe.embedding = recipe.head = find_head_type(head_type);
    }
    return recipe;
}

std::string weight_type_names() {
    return join(kTypes, ", ", &NamedType::name);
}

}  // namespace knap
