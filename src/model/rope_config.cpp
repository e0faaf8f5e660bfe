#include "model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/quoted.h"
#include "model/config_reader.h"

namespace knap {
namespace {

enum class Scaling { none, linear, yarn };

// A file without this field means linear scaling, by a factor that defaults to 1.
Scaling read_scaling(const ConfigReader& reader) {
    constexpr char kField[] = "rope.scaling.type";
    const std::string type = reader.file().string(reader.key(kField)).value_or("linear");
    if (type == "none") {
        return Scaling::none;
    }
    if (type == "linear") {
        return Scaling::linear;
    }
    if (type == "yarn") {
        return Scaling::yarn;
    }
    reader.fail_field(kField, "none, linear or yarn", in_quotes(type));
}

// How much the context is stretched. 0 in a file means not at all.
float read_factor(const ConfigReader& reader) {
    const char* field = "rope.scaling.factor";
    std::optional<float> factor = reader.number(field);
    if (!factor) {
        field = "rope.scale_linear";  // the field's older name
        factor = reader.number(field);
    }
    if (factor.value_or(0.0f) == 0.0f) {
        return 1.0f;
    }
    if (*factor < 1e-3f || *factor > 1e6f) {
        reader.fail_field(field, "0.001 to 1000000", *factor);
    }
    return *factor;
}

// YaRN's attention factor, 1 + 0.1 ln(factor) (arXiv 2309.00071, section 3.4). ggml multiplies by
// the same when ext_factor is not 0, so this divides it out.
float yarn_attention_factor(float freq_scale) {
    const float factor = 1.0f / freq_scale;
    const float wanted = factor <= 1.0f ? 1.0f : 0.1f * std::log(factor) + 1.0f;
    return wanted * (1.0f / (1.0f + 0.1f * std::log(factor)));
}

// libllama reads these fields for other architectures but not for ours, and knap follows libllama.
void mention_unused_yarn_fields(const ConfigReader& reader) {
    for (const char* field :
         {"ext_factor", "attn_factor", "beta_fast", "beta_slow", "log_multiplier"}) {
        const std::string key = reader.key(concat("rope.scaling.yarn_", field));
        if (const std::optional<double> value = reader.file().number(key)) {
            log_info(reader.file().path().string(), ": key ", key, " = ", *value,
                     " is ignored, as in libllama");
        }
    }
}

void reject_sections(const ConfigReader& reader) {
    constexpr char kField[] = "rope.dimension_sections";
    const auto sections = reader.file().integers(reader.key(kField));
    if (sections &&
        std::any_of(sections->begin(), sections->end(), [](auto n) { return n != 0; })) {
        reader.fail_field(kField, "none", "sections (several positions per token, not supported)");
    }
}

}  // namespace

RopeConfig read_rope_config(const ConfigReader& reader,
                            RopePairing pairing,
                            int head_dim,
                            int n_ctx_train) {
    constexpr int kMaxContext = std::numeric_limits<int>::max();
    reject_sections(reader);
    RopeConfig rope;
    rope.pairing = pairing;
    rope.n_rot = reader.count_or("rope.dimension_count", head_dim, kMaxContext);
    if (rope.n_rot != head_dim) {
        reader.fail_field("rope.dimension_count", concat("the head size, ", head_dim), rope.n_rot);
    }
    rope.freq_base = reader.number("rope.freq_base").value_or(rope.freq_base);
    if (rope.freq_base <= 0.0f) {
        reader.fail_field("rope.freq_base", "more than 0", rope.freq_base);
    }
    rope.n_ctx_orig =
        reader.count_or("rope.scaling.original_context_length", n_ctx_train, kMaxContext);

    const Scaling scaling = read_scaling(reader);
    rope.freq_scale = scaling == Scaling::none ? 1.0f : 1.0f / read_factor(reader);
    if (scaling == Scaling::yarn) {
        mention_unused_yarn_fields(reader);
        rope.ext_factor = 1.0f;
        rope.attn_factor = yarn_attention_factor(rope.freq_scale);
        rope.scaling = "yarn";
    } else if (rope.freq_scale != 1.0f) {
        rope.scaling = "linear";
    }
    rope.attn_factor *= reader.number("rope.scaling.attn_factor").value_or(1.0f);
    return rope;
}

}  // namespace knap
