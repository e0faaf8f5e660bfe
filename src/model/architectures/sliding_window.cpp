#include "model/architectures/sliding_window.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "model/config_reader.h"

namespace knap {
namespace {

// For each layer, and perhaps for those of the file that are ignored.
std::vector<bool> read_pattern(const ConfigReader& reader,
                               int n_pattern,
                               const ModelConfig& config) {
    const std::string key = reader.key(kWindowPattern);
    const int n_layers = config.n_layers;
    if (reader.file().is_array(key)) {
        std::vector<bool> pattern = *reader.file().booleans(key);
        if (std::cmp_not_equal(pattern.size(), n_layers) &&
            std::cmp_not_equal(pattern.size(), config.n_layers_of_file())) {
            reader.fail_field(kWindowPattern, concat("a value for each of ", n_layers, " layers"),
                              pattern.size());
        }
        return pattern;
    }
    // 0: every layer has a window; 1: none.
    const std::uint64_t n =
        reader.file().integer(key).value_or(static_cast<std::uint64_t>(n_pattern));
    std::vector<bool> pattern;
    for (std::uint64_t layer = 0; std::cmp_less(layer, n_layers); ++layer) {
        pattern.push_back(n == 0 || layer % n < n - 1);
    }
    return pattern;
}

}  // namespace

int read_window(const ConfigReader& reader, int fallback) {
    const std::uint64_t window =
        reader.file().integer(reader.key(kWindow)).value_or(static_cast<std::uint64_t>(fallback));
    constexpr int kMost = std::numeric_limits<int>::max();
    if (std::cmp_greater(window, kMost)) {
        reader.fail_field(kWindow, concat("0 to ", kMost), window);
    }
    return static_cast<int>(window);
}

void set_windows(const ConfigReader& reader, int window, int n_pattern, ModelConfig& config) {
    const std::vector<bool> pattern = read_pattern(reader, n_pattern, config);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        if (pattern[i]) {
            // A window at least as long as the context hides nothing.
            config.layers[i].rotation = Rotation::local;
            config.layers[i].window = window < config.n_ctx_train ? window : 0;
        }
    }
}

RopeConfig read_local_rope(const ConfigReader& reader, RopeConfig rope) {
    rope.freq_base = reader.number(kLocalBase).value_or(rope.freq_base);
    if (rope.freq_base <= 0.0f) {
        reader.fail_field(kLocalBase, "above 0", rope.freq_base);
    }
    return rope;
}

}  // namespace knap
