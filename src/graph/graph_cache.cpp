#include "graph/graph_cache.h"

#include <algorithm>

#include <sys/mman.h>

#include "base/error.h"

namespace knap {

GraphCache::GraphCache(std::size_t n_graphs, std::size_t arena_bytes)
    : n_graphs_(n_graphs), arena_bytes_(arena_bytes) {
    // Address space only: an arena's pages are taken when a graph is first built in it.
    void* memory = mmap(nullptr, reserved_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fail("memory: expected ", reserved_bytes() >> 20,
             " MiB of address space for graphs, found less");
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = n_graphs_; i > 0; --i) {
        free_arenas_.push_back(i - 1);
    }
}

GraphCache::~GraphCache() {
    slots_.clear();  // contexts point into the arenas
    munmap(memory_, reserved_bytes());
}

BuiltGraph* GraphCache::find(const GraphKey& key) {
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.key == key; });
    if (slot == slots_.end()) {
        return nullptr;
    }
    slots_.splice(slots_.begin(), slots_, slot);
    ++statistics_.reused;
    return &slots_.front().built;
}

BuiltGraph& GraphCache::place(const GraphKey& key) {
    if (free_arenas_.empty()) {
        free_arenas_.push_back(slots_.back().arena);
        slots_.pop_back();
        ++statistics_.evicted;
    }
    const std::size_t arena = free_arenas_.back();
    free_arenas_.pop_back();
    slots_.push_front(Slot{key, BuiltGraph{}, arena});
    ++statistics_.built;
    return slots_.front().built;
}

std::span<std::byte> GraphCache::arena(const BuiltGraph& graph) const {
    const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                   [&](const Slot& s) { return &s.built == &graph; });
    KNAP_ASSERT(slot != slots_.end(), "the graph lives in this cache");
    return {memory_ + slot->arena * arena_bytes_, arena_bytes_};
}

void GraphCache::clear() {
    statistics_.evicted += static_cast<std::int64_t>(slots_.size());
    for (const Slot& slot : slots_) {
        free_arenas_.push_back(slot.arena);
    }
    slots_.clear();
}

}  // namespace knap
