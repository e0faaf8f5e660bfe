// Copies rows of a cache on a device, for all layers in one graph and without leaving the device.
#pragma once

#include <optional>
#include <span>

#include "ggml-cpp.h"

#include "device/mirrored_buffer.h"
#include "graph/cache/row_format.h"

namespace knap {

class Backend;

class RowCopier {
  public:
    struct Size {
        int n_rows;  // of every copy
        int n_kv_heads;
    };
    // `formats` alternate between keys and values, layer by layer; all keys have one layout, and
    // all values. All arguments must outlive the object.
    RowCopier(Backend& backend, std::span<const RowFormat> formats, const Size& size);

    int n_rows() const { return size_.n_rows; }
    // Copies n_rows() rows, from row `from` on, over those from row `to` on. They must not overlap.
    void copy(int from, int to);

  private:
    // The units of the rows: where they come from and go to, the same in every layer.
    struct Units {
        RowFormat format;
        ggml_tensor* from;  // i32 [n_units]
        ggml_tensor* to;    // i64 [n_units]
    };
    Units new_units(const RowFormat& format) const;
    void add_copy(const RowFormat& format, const Units& units);
    void set(const Units& units, int from, int to) const;

    Backend& backend_;
    Size size_;
    ggml_context_ptr context_;
    std::optional<MirroredBuffer> indices_;
    Units keys_;
    Units values_;
    ggml_context_ptr graph_context_;
    ggml_cgraph* graph_ = nullptr;
    ggml_gallocr_ptr allocator_;
};

}  // namespace knap
