#include "model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/quoted.h"
#include "model/architectures/architecture.h"
#include "model/config_reader.h"

namespace knap {
namespace {

constexpr std::string_view kBetaFast = "beta_fast";
constexpr std::string_view kBetaSlow = "beta_slow";
constexpr std::string_view kLogMultiplier = "log_multiplier";

enum class Scaling { none, linear, yarn };

// A file without this field means linear scaling, by a factor that defaults to 1. So does longrope,
// whose frequency divisors are tensors.
Scaling read_scaling(const ConfigReader& reader, bool may_be_long) {
    constexpr char kField[] = "rope.scaling.type";
    const std::string type = reader.file().string(reader.key(kField)).value_or("linear");
    if (type == "none") {
        return Scaling::none;
    }
    if (type == "linear" || (type == "longrope" && may_be_long)) {
        return Scaling::linear;
    }
    if (type == "yarn") {
        return Scaling::yarn;
    }
    if (type == "longrope") {
        reader.fail_unsupported(kField, "none, linear or yarn", in_quotes(type),
                                "frequency divisors by length of context", "phi3");
    }
    reader.fail_field(kField,
                      may_be_long ? "none, linear, yarn or longrope" : "none, linear or yarn",
                      in_quotes(type));
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
// the same when ext_factor is not 0, so this divides it out. A model may divide by the same formula
// with a multiplier of its own.
float yarn_attention_factor(float freq_scale, float log_multiplier) {
    const float factor = 1.0f / freq_scale;
    const auto stretch = [&](float multiplier) {
        return factor <= 1.0f ? 1.0f : 0.1f * multiplier * std::log(factor) + 1.0f;
    };
    const float wanted =
        log_multiplier == 0.0f ? stretch(1.0f) : stretch(1.0f) / stretch(log_multiplier);
    return wanted * (1.0f / (1.0f + 0.1f * std::log(factor)));
}

// libllama reads these fields for some architectures only, and knap follows libllama.
void mention_unused_yarn_fields(const ConfigReader& reader, bool reads_yarn) {
    for (const std::string_view field :
         {std::string_view("ext_factor"), std::string_view("attn_factor"), kBetaFast, kBetaSlow,
          kLogMultiplier}) {
        if (reads_yarn && (field == kBetaFast || field == kBetaSlow || field == kLogMultiplier)) {
            continue;
        }
        const std::string key = reader.key(concat("rope.scaling.yarn_", field));
        if (const std::optional<double> value = reader.file().number(key)) {
            log_info(reader.file().path().string(), ": key ", key, " = ", *value,
                     " is ignored, as in libllama");
        }
    }
}

void reject_sections(const ConfigReader& reader) {
    const auto sections = reader.file().integers(reader.key(kSections));
    if (sections &&
        std::any_of(sections->begin(), sections->end(), [](auto n) { return n != 0; })) {
        reader.fail_unsupported(kSections, "none", "sections", "several positions per token",
                                "qwen3vl");
    }
}

int read_rotated_channels(const ConfigReader& reader,
                          const Architecture& architecture,
                          int head_dim) {
    constexpr int kMost = std::numeric_limits<int>::max();
    constexpr char kField[] = "rope.dimension_count";
    const int n_rot = reader.count_or(kField, head_dim, kMost);
    const bool may_be_partial = architecture.reads(kPartialRotation);
    if (n_rot > head_dim || n_rot % 2 != 0) {
        reader.fail_field(kField,
                          may_be_partial ? concat("an even number up to the head size, ", head_dim)
                                         : concat("the head size, ", head_dim),
                          n_rot);
    }
    if (n_rot < head_dim && !may_be_partial) {
        const bool has_halves = architecture.rope_pairing == RopePairing::halves;
        reader.fail_unsupported(kField, concat("the head size, ", head_dim), n_rot,
                                "channels that do not rotate", has_halves ? "phi3" : "glm4");
    }
    return n_rot;
}

}  // namespace

RopeConfig read_rope_config(const ConfigReader& reader,
                            const Architecture& architecture,
                            int head_dim,
                            int n_ctx_train) {
    constexpr int kMaxContext = std::numeric_limits<int>::max();
    if (!architecture.reads(kSections)) {
        reject_sections(reader);
    }
    RopeConfig rope;
    rope.pairing = architecture.rope_pairing;
    rope.n_rot = read_rotated_channels(reader, architecture, head_dim);
    rope.freq_base = reader.number("rope.freq_base").value_or(rope.freq_base);
    if (rope.freq_base <= 0.0f) {
        reader.fail_field("rope.freq_base", "more than 0", rope.freq_base);
    }
    rope.n_ctx_orig =
        reader.count_or("rope.scaling.original_context_length", n_ctx_train, kMaxContext);

    const Scaling scaling = read_scaling(reader, architecture.reads(kLongRope));
    rope.freq_scale = scaling == Scaling::none ? 1.0f : 1.0f / read_factor(reader);
    if (scaling == Scaling::yarn) {
        const bool reads_yarn = architecture.reads(kYarnFields);
        const auto read = [&](std::string_view field, float fallback) {
            const std::string whole = concat("rope.scaling.yarn_", field);
            return reads_yarn ? reader.number(whole).value_or(fallback) : fallback;
        };
        mention_unused_yarn_fields(reader, reads_yarn);
        rope.ext_factor = 1.0f;
        rope.beta_fast = read(kBetaFast, rope.beta_fast);
        rope.beta_slow = read(kBetaSlow, rope.beta_slow);
        rope.attn_factor = yarn_attention_factor(rope.freq_scale, read(kLogMultiplier, 0.0f));
        rope.scaling = "yarn";
    } else if (rope.freq_scale != 1.0f) {
        rope.scaling = "linear";
    }
    rope.attn_factor *= reader.number("rope.scaling.attn_factor").value_or(1.0f);
    return rope;
}

}  // namespace knap
