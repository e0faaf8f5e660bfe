// A model on whatever device is to be timed: one that ggml knows, or an NVIDIA GPU with knap's own
// kernels in a build whose ggml has no CUDA.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "device/device_identity.h"
#include "device/device_list.h"
#include "model/architectures/architecture.h"
#include "model/placement/strip_coverage.h"
#include "model_rig.h"
#include "support/strip_model.h"

namespace knap::bench {

class DeviceRig {
  public:
    // `device` is a name of ggml's; empty: the first GPU, or the CPU if there is none.
    DeviceRig(const std::filesystem::path& path,
              const std::string& device,
              Kernels kernels,
              int n_ctx) {
        const DeviceEntry entry =
            device.empty() ? list_devices().front() : find_device(device, list_devices());
        if (kernels == Kernels::own && device.empty() && entry.is_cpu) {
            load_strips(path, n_ctx);
            return;
        }
        backend_ = std::make_unique<Backend>(entry.device, 0);
        rig_ = std::make_unique<ModelRig>(path, *backend_, kernels, CacheType::f16, n_ctx);
        if (kernels == Kernels::own && !entry.is_cpu && !rig_->weights->tensors().has_strips) {
            refuse(rig_->weights->statistics().cuda_kernels);
        }
    }

    Forward& forward() { return rig_ != nullptr ? rig_->forward : rows_->forward(); }
    Sequence& cache() { return rig_ != nullptr ? rig_->cache : rows_->sequence(); }
    const ModelConfig& config() { return forward().config(); }
    std::string device_name() const {
        return backend_ != nullptr ? identify(*backend_).name : strips_->device().name;
    }
    int n_threads() const { return backend_ != nullptr ? backend_->n_threads() : 0; }  // 0: a GPU

  private:
    [[noreturn]] static void refuse(const std::string& reason) {
        fail("--kernels own: expected a GPU and a model that knap's CUDA kernels take, found ",
             reason);
    }

    // What Weights::load() checks where ggml knows the GPU.
    static void check_strips(const std::filesystem::path& path) {
        const GgufFile file = GgufFile::open(path);
        const ModelConfig config = read_config(file);
        ModelTensors tensors;
        const std::vector<TensorBinding> bindings =
            bind_tensors(file, config, find_architecture(config.architecture)->tensors, tensors);
        const char* name = "CUDA0";
        if (const auto reason = why_not_strips(config, bindings, tensors,
                                               {.names = {name},
                                                .first = find_cuda_device(name),
                                                .has_kernels = has_cuda_kernels()},
                                               {.kernels = Kernels::own})) {
            refuse(*reason);
        }
    }

    void load_strips(const std::filesystem::path& path, int n_ctx) {
        check_strips(path);
        strips_ = std::make_unique<test::StripModel>(path);
        devices_ = strips_->device_models();
        rows_ = std::make_unique<SingleSequence>(strips_->config(), devices_, n_ctx + kScratchRows,
                                                 kUbatch);
    }

    std::unique_ptr<Backend> backend_;
    std::unique_ptr<ModelRig> rig_;
    // In place of both.
    std::unique_ptr<test::StripModel> strips_;
    DeviceModels devices_;
    std::unique_ptr<SingleSequence> rows_;
};

}  // namespace knap::bench
