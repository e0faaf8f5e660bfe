// Layers that attend to a window of recent positions.
#pragma once

#include <string_view>

#include "model/config.h"

namespace knap {

class ConfigReader;

inline constexpr std::string_view kWindow = "attention.sliding_window";
inline constexpr std::string_view kWindowPattern = "attention.sliding_window_pattern";
inline constexpr std::string_view kLocalBase = "rope.freq_base_swa";

// The length of windows, or `fallback` if the file does not have it; 0: none.
int read_window(const ConfigReader& reader, int fallback);

// Gives layers a window, as the file's pattern says: a bool or an integer for each layer, or n,
// which leaves every n-th without one. `n_pattern` is that n for files without a pattern. Those
// with a window have Rotation::local.
void set_windows(const ConfigReader& reader, int window, int n_pattern, ModelConfig& config);

// Local rotation as the global one, but for what kLocalBase says.
RopeConfig read_local_rope(const ConfigReader& reader, RopeConfig rope);

}  // namespace knap
