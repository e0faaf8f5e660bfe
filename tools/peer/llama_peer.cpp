#include "tools/peer/llama_peer.h"

#include <array>

#include "ggml.h"
#include "llama-cpp.h"

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
    params.n_ctx = static_cast<std::uint32_t>(options.n_ctx);
    params.n_batch = static_cast<std::uint32_t>(options.n_ctx);
    params.n_ubatch = static_cast<std::uint32_t>(options.n_ubatch);
    params.n_threads = options.n_threads;
    params.n_threads_batch = options.n_threads;
    params.flash_attn_type =
        options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context_ptr context(llama_init_from_model(model, params));
    if (context == nullptr) {
        fail("libllama could not create a context of ", options.n_ctx,
             " tokens: ", errors.reason());
    }
    return context;
}

class Batch {
  public:
    Batch(std::span<const Token> tokens, int first_position, LlamaPeer::Logits wanted)
        : batch_(llama_batch_init(static_cast<std::int32_t>(tokens.size()), 0, 1)) {
        batch_.n_tokens = static_cast<std::int32_t>(tokens.size());
        for (std::int32_t i = 0; i < batch_.n_tokens; ++i) {
            batch_.token[i] = tokens[static_cast<std::size_t>(i)];
            batch_.pos[i] = first_position + i;
            batch_.n_seq_id[i] = 1;
            batch_.seq_id[i][0] = 0;
            const bool is_wanted =
                wanted == LlamaPeer::Logits::every_row || i + 1 == batch_.n_tokens;
            batch_.logits[i] = is_wanted ? 1 : 0;
        }
    }
    ~Batch() { llama_batch_free(batch_); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    const llama_batch& get() const { return batch_; }

  private:
    llama_batch batch_;
};

}  // namespace

struct LlamaPeer::Impl {
    llama_model_ptr model;
    llama_context_ptr context;
    std::size_t n_vocab = 0;
    int n_rows = 0;
};

LlamaPeer::LlamaPeer(const std::filesystem::path& path, const PeerOptions& options)
    : impl_(std::make_unique<Impl>()) {
    impl_->model = load_model(path, options);
    impl_->context = make_context(impl_->model.get(), options);
    impl_->n_vocab =
        static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(impl_->model.get())));
    if (options.beside != nullptr && options.beside->is_host()) {
        auto* pool = static_cast<ggml_threadpool_t>(options.beside->thread_pool());
        llama_attach_threadpool(impl_->context.get(), pool, pool);
    }
}

LlamaPeer::~LlamaPeer() = default;
LlamaPeer::LlamaPeer(LlamaPeer&&) noexcept = default;

std::vector<std::span<const float>> LlamaPeer::feed(std::span<const Token> tokens, Logits wanted) {
    const Batch batch(tokens, impl_->n_rows, wanted);
    const std::int32_t status = llama_decode(impl_->context.get(), batch.get());
    if (status != 0) {
        fail("libllama could not decode ", tokens.size(), " tokens after ", impl_->n_rows,
             ": status ", status);
    }
    impl_->n_rows += static_cast<int>(tokens.size());
    std::vector<std::span<const float>> rows;
    for (std::int32_t i = 0; i < batch.get().n_tokens; ++i) {
        if (batch.get().logits[i] != 0) {
            rows.emplace_back(llama_get_logits_ith(impl_->context.get(), i), impl_->n_vocab);
        }
    }
    return rows;
}

void LlamaPeer::truncate(int n_rows) {
    llama_memory_seq_rm(llama_get_memory(impl_->context.get()), 0, n_rows, -1);
    impl_->n_rows = n_rows;
}

}  // namespace knap
