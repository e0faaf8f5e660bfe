// The stages of a model, one after the other: passes of batches through all of its devices.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "forward/batch.h"
#include "forward/stage.h"
#include "kv/kv_memory.h"

namespace knap {

struct ModelConfig;

// What all devices promise together; the name is that of the one that promises least.
DeviceLimits weakest_limits(std::span<const std::unique_ptr<DeviceModel>> devices);

// How much memory a pipeline has.
struct PipelineSize {
    int capacity = 0;     // rows of a sequence
    int n_sequences = 1;  // sequences of full length that fit at once
    int n_rows = 0;       // of all sequences; 0: as many as n_sequences need
    int max_rows = 0;     // of a pass
    // The largest batch whose products with the weights are bit-identical to single-row passes.
    int exact_rows = 1;
};

class Pipeline final : public BatchRunner {
  public:
    // Reserves the cache and the memory of the largest pass. `devices` in the order of their
    // layers. `config` must outlive the object.
    Pipeline(const ModelConfig& config,
             std::span<const std::unique_ptr<DeviceModel>> devices,
             const PipelineSize& size);

    const ModelConfig& config() const { return config_; }
    KvMemory& memory() { return *memory_; }
    const DeviceLimits& device_limits() const { return device_limits_; }

    PassLimits limits() const override;
    void run(std::span<RowRun* const> runs) override;

    // The most rows of a pass of one run whose first row is row `first_row` of its sequence.
    int max_rows(int first_row) const;
    // Chains and banks need a single device with all layers: see Stage.
    int max_chain(int first_row) const;
    int max_best() const;
    void run_chain(const ChainRun& run);
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);
    std::size_t n_bank_rows() const;

    ForwardStatistics statistics() const;  // of all passes so far; may be called during one

  private:
    // What one device has to do of a batch.
    struct Leg {
        Stage* stage = nullptr;
        std::vector<RowRun> runs{};
        std::vector<RunResult> results{};
    };
    void set_legs(std::span<RowRun* const> runs);
    bool run_legs(std::span<RowRun* const> runs);
    double count_pass();

    const ModelConfig& config_;
    int max_rows_;
    int exact_rows_;
    DeviceLimits device_limits_;
    std::unique_ptr<KvMemory> memory_;
    std::vector<std::unique_ptr<Stage>> stages_;
    std::vector<Leg> legs_;  // of the pass at hand; kept for their memory
    mutable std::mutex statistics_mutex_;
    ForwardStatistics statistics_;
};

}  // namespace knap
