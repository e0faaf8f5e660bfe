#include "tools/peer/llama_context.h"

#include <algorithm>
#include <array>

#include "ggml.h"

#include "base/error.h"
#include "device/backend.h"
#include "device/ggml_log.h"

namespace knap {
namespace {

constexpr int kAllLayers = 1 << 20;

llama_model_ptr load_model(const std::filesystem::path& path, const PeerOptions& options) {
    install_ggml_log();
    GgmlErrorCapture errors;
    llama_model_params params = llama_model_default_params();
    params.use_extra_bufts = options.repack;
    const bool is_on_host = options.beside == nullptr || options.beside->is_host();
    std::array<ggml_backend_dev_t, 2> devices{is_on_host ? nullptr : options.beside->device()};
    params.devices = devices.data();
    params.n_gpu_layers = is_on_host ? 0 : kAllLayers;
    llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    if (model == nullptr) {
        fail(path.string(), ": libllama could not load it: ", errors.reason());
    }
    return model;
}

llama_context_ptr make_context(llama_model* model, const PeerOptions& options) {
    GgmlErrorCapture errors;
    llama_context_params params = llama_context_default_params();
    // libllama counts the rows of all sequences together.
    params.n_ctx = static_cast<std::uint32_t>(options.n_ctx * options.n_sequences);
    params.n_seq_max = static_cast<std::uint32_t>(options.n_sequences);
    params.kv_unified = options.kv_unified;
    params.n_batch = static_cast<std::uint32_t>(std::max(options.n_ctx, options.n_ubatch));
    params.n_ubatch = static_cast<std::uint32_t>(options.n_ubatch);
    params.n_threads = options.n_threads;
    params.n_threads_batch = options.n_threads;
    params.flash_attn_type =
        options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context_ptr context(llama_init_from_model(model, params));
    if (context == nullptr) {
        fail("libllama could not create a context of ", options.n_sequences, " times ",
             options.n_ctx, " tokens: ", errors.reason());
    }
    return context;
}

}  // namespace

LlamaRows::LlamaRows(std::size_t n_max)
    : batch_(llama_batch_init(static_cast<std::int32_t>(n_max), 0, 1)) {}

void LlamaRows::add(std::span<const Token> tokens,
                    int sequence,
                    int first_position,
                    Logits wanted) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool is_wanted =
            wanted == Logits::every_row || (wanted == Logits::last_row && i + 1 == tokens.size());
        const std::int32_t row = batch_.n_tokens++;
        batch_.token[row] = tokens[i];
        batch_.pos[row] = first_position + static_cast<llama_pos>(i);
        batch_.n_seq_id[row] = 1;
        batch_.seq_id[row][0] = sequence;
        batch_.logits[row] = is_wanted ? 1 : 0;
    }
}

LlamaContext::LlamaContext(const std::filesystem::path& path, const PeerOptions& options)
    : model_(load_model(path, options)) {
    open(options);
}

LlamaContext::LlamaContext(const LlamaContext& other, const PeerOptions& options)
    : model_(other.model_) {
    open(options);
}

void LlamaContext::open(const PeerOptions& options) {
    context_ = make_context(model_.get(), options);
    n_vocab_ = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())));
    if (options.beside != nullptr && options.beside->is_host()) {
        auto* pool = static_cast<ggml_threadpool_t>(options.beside->thread_pool());
        llama_attach_threadpool(context_.get(), pool, pool);
    }
}

void LlamaContext::decode(const LlamaRows& rows) {
    const std::int32_t status = llama_decode(context_.get(), rows.get());
    if (status != 0) {
        fail("libllama could not decode ", rows.size(), " rows: status ", status);
    }
}

std::span<const float> LlamaContext::logits(std::int32_t row) const {
    return {llama_get_logits_ith(context_.get(), row), n_vocab_};
}

void LlamaContext::truncate(int sequence, int n_rows) {
    if (!llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, n_rows, -1)) {
        fail("libllama could not drop the rows of a sequence from row ", n_rows, " on");
    }
}

}  // namespace knap
