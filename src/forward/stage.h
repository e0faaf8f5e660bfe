// The part of a forward pass on one device, through the layers that it computes: what a device has
// to offer, and nothing of how it computes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "forward/batch.h"
#include "forward/stream_bank.h"
#include "kv/kv_memory.h"

namespace knap {

class Stage {
  public:
    virtual ~Stage() = default;

    virtual LayerRange layers() const = 0;
    // Runs these runs through this device's layers and fills their results. With `gives_stream`
    // these include the stream of every row after the last layer. Returns false when every run was
    // cancelled.
    virtual bool run(std::span<RowRun* const> runs, bool gives_stream) = 0;

    // The most rows of a pass of one run whose first row is row `first_row` of its sequence.
    virtual int max_rows(int first_row) const = 0;

    // --- only for a stage that has all layers ---
    // The most passes of a chain from row `first_row` on; 0: the device computes no chains.
    virtual int max_chain(int first_row) const = 0;
    // The most tokens of a row that it ranks: for ForwardRequest::n_best, and for chains, which
    // then draw from so many (top-k) and stop by themselves. 0: it returns choices or whole rows,
    // and its chains are greedy and take all of their steps.
    virtual int max_best() const { return 0; }
    // Fills choices, probabilities and captures. Returns false when cancelled.
    virtual bool run_chain(const ChainRun& run) = 0;
    // See Forward::borrow_bank().
    virtual std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows) = 0;
    virtual std::size_t n_bank_rows() const = 0;  // 0: no bank

    virtual ForwardStatistics statistics() const = 0;
};

// What a device promises of its passes.
struct DeviceLimits {
    int exact_rows = 1;            // the largest batch that is bit-identical to single-row passes
    bool has_exact_trees = false;  // rows of a tree are bit-identical to plain decoding
    // The most rows of passes that verify drafts: larger ones cost several times as much. 0: no
    // such limit.
    int verify_rows = 0;
    // Rows per page that its attention needs; 0: a page must hold a whole sequence.
    int page_rows = 0;
    std::string_view attention{};  // its name: "kernel", "folded", "flash"
};

// Some layers of a model on one device: makes what passes over them need.
class DeviceModel {
  public:
    virtual ~DeviceModel() = default;

    virtual LayerRange layers() const = 0;
    virtual DeviceLimits limits() const = 0;
    virtual std::unique_ptr<KvStore> new_store(const PageShape& pages) const = 0;
    // For passes of up to `max_rows` rows. `store` must be one of new_store() and outlive the
    // stage.
    virtual std::unique_ptr<Stage> new_stage(KvStore& store, int max_rows) const = 0;
};

}  // namespace knap
