// The text model of Qwen3-VL: a qwen3 some of whose channels do not rotate. With experts:
// qwen3vlmoe.
#include <cstdint>
#include <limits>
#include <vector>

#include "model/architectures/architecture.h"
#include "model/config_reader.h"

namespace knap {
namespace {

// Pairs of channels take turns to rotate with one of four positions: of time, height and width,
// and a fourth. Text has its position in the first three, and 0 in the fourth, so pairs of the
// fourth do not rotate: their frequency is divided by infinity.
void describe_qwen3vl(const ConfigReader& reader, ModelConfig& config) {
    const auto sections = reader.file().integers(reader.key(kSections));
    if (!sections || sections->size() != 4) {
        reader.fail_field(kSections, "4 numbers",
                          sections ? concat(sections->size()) : "no such key");
    }
    std::uint64_t n_all = 0;
    for (const std::uint64_t n : *sections) {
        if (std::cmp_greater(n, config.head_dim)) {
            reader.fail_field(kSections, concat("at most ", config.head_dim, " each"), n);
        }
        n_all += n;
    }
    if (n_all == 0) {
        reader.fail_field(kSections, "a number above 0", "none");
    }
    for (std::uint64_t pair = 0; std::cmp_less(pair, config.rope.n_rot / 2); ++pair) {
        const std::uint64_t in_turn = pair % n_all;
        const bool rotates = in_turn < 3 * (*sections)[in_turn % 3];
        config.rope.divisors.push_back(rotates ? 1.0f : std::numeric_limits<float>::infinity());
    }
}

}  // namespace

Architecture arch_qwen3vl() {
    Architecture architecture = arch_qwen3();
    architecture.name = "qwen3vl";
    architecture.fields = {kSections};
    architecture.describe = describe_qwen3vl;
    return architecture;
}

Architecture arch_qwen3vlmoe() {
    return with_experts(arch_qwen3vl(), "qwen3vlmoe",
                        {.length = ExpertRules::Length::own_or_share});
}

}  // namespace knap
