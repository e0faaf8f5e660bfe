// Which device computes which layers of a model. Shares are contiguous and in layer order. The
// first device also has the embedding, the last one the output norm and the head.
#pragma once

#include <span>
#include <vector>

namespace knap {

class Backend;

// Layers [first_layer, end_layer) on one device.
struct LayerShare {
    Backend* backend = nullptr;
    int first_layer = 0;
    int end_layer = 0;

    int n_layers() const { return end_layer - first_layer; }
    bool has(int layer) const { return layer >= first_layer && layer < end_layer; }
};

// The number of layers for a device.
struct LayerCount {
    Backend& backend;
    int n_layers;
};

class LayerMap {
  public:
    // The devices must outlive the map and everything made from it.
    LayerMap(Backend& backend, int n_layers);
    // Devices in layer order; those without layers are left out.
    explicit LayerMap(std::span<const LayerCount> counts);

    std::span<const LayerShare> shares() const { return shares_; }  // at least one
    const LayerShare& of_layer(int layer) const;
    const LayerShare& first() const { return shares_.front(); }
    const LayerShare& last() const { return shares_.back(); }
    int n_layers() const { return last().end_layer; }

  private:
    std::vector<LayerShare> shares_;
};

}  // namespace knap
