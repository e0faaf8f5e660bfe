#include "support/strip_model.h"

#include "cuda/cuda_device_model.h"
#include "kernels/cuda/packing.h"
#include "kernels/cuda/strips.h"

namespace knap::test {

bool has_strip_gpu() {
    return has_cuda_kernels() && find_cuda_device("CUDA0").index >= 0;
}

StripModel::StripModel(const std::filesystem::path& path)
    : host_(path),
      device_(find_cuda_device("CUDA0")),
      context_(ggml_init({std::size_t{4096} * ggml_tensor_overhead(), nullptr, true})),
      tensors_(host_.weights->tensors()) {
    use_device(device_);
    const bool is_tied = tensors_.output == tensors_.token_embd;
    upload(tensors_.token_embd, true);
    if (is_tied) {
        tensors_.output = tensors_.token_embd;
    } else {
        upload(tensors_.output, true);
    }
    upload(tensors_.output_norm, false);
    upload(tensors_.output_b, false);
    upload(tensors_.rope_freqs, false);
    for (LayerWeights& layer : tensors_.layers) {
        for (ggml_tensor** matrix : {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.ffn_gate,
                                     &layer.ffn_up, &layer.ffn_down}) {
            upload(*matrix, true);
        }
        for (ggml_tensor** small :
             {&layer.attn_norm, &layer.bq, &layer.bk, &layer.bv, &layer.bo, &layer.q_norm,
              &layer.k_norm, &layer.attn_post_norm, &layer.ffn_norm, &layer.ffn_gate_b,
              &layer.ffn_up_b, &layer.ffn_down_b, &layer.ffn_post_norm}) {
            upload(*small, false);
        }
        layer.rope_freqs = tensors_.rope_freqs;
    }
    tensors_.has_strips = true;
}

void StripModel::upload(ggml_tensor*& tensor, bool is_matrix) {
    if (tensor == nullptr) {
        return;
    }
    ggml_tensor* copy =
        ggml_new_tensor_2d(context_.get(), tensor->type, tensor->ne[0],
                           is_matrix ? rows_in_strips(tensor->ne[1]) : tensor->ne[1]);
    copy->data = memory_.emplace_back(ggml_nbytes(copy), "a tensor").data();
    CudaStream stream;
    stream.upload(copy->data, tensor->data, ggml_nbytes(tensor));
    stream.wait();
    if (is_matrix) {
        pack_strips(copy->data, copy->type, copy->ne[0], copy->ne[1]);
    }
    tensor = copy;
}

DeviceModels StripModel::device_models(const CacheTypes& types, std::size_t shared_bytes) const {
    CudaDevice device = device_;
    device.shared_bytes = shared_bytes > 0 ? shared_bytes : device.shared_bytes;
    DeviceModels models;
    models.push_back(new_cuda_device_model(host_.config, tensors_, device, types));
    return models;
}

}  // namespace knap::test
