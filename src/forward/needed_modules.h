// How far a pass has to compute its modules, which are numbered through all layers: the attention
// of layer i is module 2i, its MLP module 2i + 1.
#pragma once

#include <algorithm>
#include <span>

namespace knap {

// What a pass computes: layers [entry_layer, exit_layer), and the streams that it hands out.
struct ModuleRange {
    int entry_layer = 0;
    int exit_layer = 0;
    std::span<const int> captures{};  // ascending

    int last_capture() const { return captures.empty() ? 0 : captures.back(); }
};

// Modules whose rows all have to be computed, though only some rows' logits are wanted: up to the
// last attention, which writes every row to the cache, and to the last capture. attends(layer) says
// whether the attention of a layer runs.
template <typename Attends>
int count_whole_modules(const ModuleRange& range, Attends attends) {
    int n = std::max(2 * range.entry_layer, range.last_capture());
    for (int layer = range.entry_layer; layer < range.exit_layer; ++layer) {
        n = attends(layer) ? std::max(n, 2 * layer + 1) : n;
    }
    return n;
}

// Modules whose result somebody reads, if nobody reads the last stream: of the last attention only
// keys and values are computed.
template <typename Attends>
int count_read_modules(const ModuleRange& range, Attends attends) {
    int n = range.last_capture();
    for (int layer = range.entry_layer; layer < range.exit_layer; ++layer) {
        n = attends(layer) ? std::max(n, 2 * layer) : n;
    }
    return n;
}

}  // namespace knap
