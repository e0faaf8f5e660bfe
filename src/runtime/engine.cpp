#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "decode/strategy.h"
#include "device/cpu_topology.h"
#include "device/device_list.h"
#include "graph/attention/attention_policy.h"
#include "kernels/matmul/matmul.h"
#include "model/architectures/layer_text.h"
#include "model/fingerprint.h"
#include "model/gguf/vocab_check.h"
#include "model/row_invariance.h"
#include "model/tensor_table.h"
#include "runtime/batch_invariance.h"
#include "runtime/device_memory.h"
#include "runtime/engine_impl.h"
#include "text/builtin_formats.h"

namespace knap {
namespace {

RuntimeConfig checked(RuntimeConfig config) {
    if (config.n_ubatch < 1 || config.n_ubatch > kMaxUbatch) {
        fail("`.n_ubatch`: expected 1 to ", kMaxUbatch, " rows, found ", config.n_ubatch);
    }
    if (config.n_gpu_layers < -1) {
        fail("`.n_gpu_layers`: expected at least 0 layers (-1: all), found ", config.n_gpu_layers);
    }
    if (config.worker_timeout_s < 0 || config.worker_timeout_s > kMaxWorkerTimeoutSeconds) {
        fail("`.worker_timeout_s`: expected 0 to ", kMaxWorkerTimeoutSeconds,
             " seconds (0: no limit), found ", config.worker_timeout_s);
    }
    if (config.n_threads < 0) {
        fail("`.n_threads`: expected at least 1 thread (0: all cores), found ", config.n_threads);
    }
    if (config.n_ctx < 0) {
        fail("`.n_ctx`: expected a context of at least 1 token (0: the model's own), found ",
             config.n_ctx);
    }
    if (config.n_parallel < 1 || config.n_parallel > kMaxParallel) {
        fail("`.n_parallel`: expected 1 to ", kMaxParallel, " conversations, found ",
             config.n_parallel);
    }
    if (config.profile.empty()) {
        fail("`.profile`: expected auto, none or a file, found an empty text");
    }
    return config;
}

GgufFile open_checked(const std::filesystem::path& path) {
    GgufFile file = GgufFile::open(path);
    check_vocabulary(file);
    return file;
}

std::vector<std::string> device_names(const LayerMap& layers) {
    std::vector<std::string> names;
    for (const LayerShare& share : layers.shares()) {
        names.emplace_back(ggml_backend_dev_name(share.backend->device()));
    }
    return names;
}

int choose_context(const RuntimeConfig& config, const ModelConfig& model) {
    if (config.n_ctx > model.n_ctx_train) {
        fail("`.n_ctx`: expected at most the model's context of ", model.n_ctx_train,
             " tokens, found ", config.n_ctx);
    }
    const int n_ctx =
        config.n_ctx > 0 ? config.n_ctx : std::min(model.n_ctx_train, kDefaultMaxContext);
    if (config.n_cache_rows != 0 && config.n_cache_rows < n_ctx) {
        fail("`.n_cache_rows`: expected at least the context of ", n_ctx,
             " tokens (0: `.n_ctx` times `.n_parallel`), found ", config.n_cache_rows);
    }
    return n_ctx;
}

WeightOptions weight_options(const RuntimeConfig& config, const ModelConfig& model) {
    return {.repack = config.repack,
            .kernels = config.kernels,
            .flash_attention = config.flash_attention,
            .cache_type_k = config.cache_type_k,
            .cache_type_v = config.cache_type_v,
            .has_adapter = !config.adapter_path.empty(),
            .n_ctx = choose_context(config, model)};
}

// How many whole contexts the cache holds.
int count_contexts(const RuntimeConfig& config, int n_ctx) {
    return config.n_cache_rows > 0 ? config.n_cache_rows / n_ctx : config.n_parallel;
}

// The rows of the cache with those that every context needs for drafts; 0: left open.
int rows_with_scratch(const RuntimeConfig& config) {
    return config.n_cache_rows == 0
               ? 0
               : config.n_cache_rows + kScratchRows * count_contexts(config, config.n_ctx);
}

// Of one layer: the same on every device, whatever the layout there.
std::size_t cache_row_bytes(const Engine::Impl& engine) {
    const CacheTypes types{engine.config.cache_type_k, engine.config.cache_type_v};
    const AttentionPolicy policy =
        choose_attention(engine.model, engine.config, *engine.layers().first().backend);
    return kv_row_bytes(engine.model, types, layout_for(policy.path, types.keys));
}

void check_memory(const Engine::Impl& engine, const LayerShare& share) {
    const int n_ctx = choose_context(engine.config, engine.model);
    const LayerMap& layers = engine.layers();
    const auto n_elsewhere = std::ranges::count_if(
        layers.shares(), [](const LayerShare& other) { return !other.backend->is_host(); });
    check_fits(describe(share.backend->device()),
               {.weight_bytes = stored_bytes(engine.file, layers, share),
                .cache_row_bytes = cache_row_bytes(engine) *
                                   static_cast<std::size_t>(share.n_layers() *
                                                            count_contexts(engine.config, n_ctx)),
                .scratch_bytes = estimate_scratch(engine.model, engine.config.n_ubatch, n_ctx),
                .n_ctx = n_ctx,
                .n_layers = n_elsewhere == 1 ? share.n_layers() : 0,
                .fixed_weight_bytes = stored_bytes_outside_layers(engine.file, layers, share)});
}

// Memory is checked before it is taken.
std::unique_ptr<Weights> load_weights(const Engine::Impl& engine) {
    for (const LayerShare& share : engine.layers().shares()) {
        if (!share.backend->is_host()) {
            check_memory(engine, share);
        }
    }
    return Weights::load(engine.file, engine.model, engine.layers(),
                         weight_options(engine.config, engine.model),
                         engine.config.on_load_progress);
}

std::unique_ptr<Adapter> load_adapter(const Engine::Impl& engine) {
    const RuntimeConfig& config = engine.config;
    return config.adapter_path.empty()
               ? nullptr
               : std::make_unique<Adapter>(config.adapter_path, engine.model, *engine.weights,
                                           engine.head_backend(),
                                           weight_options(config, engine.model));
}

void warn_without_kernels(const Engine::Impl& engine) {
    const bool has_host_layers = std::ranges::any_of(
        engine.layers().shares(), [](const LayerShare& share) { return share.backend->is_host(); });
    if (has_host_layers && engine.config.kernels != Kernels::ggml && !has_fast_matmul()) {
        log_warning_once(
            "knap's CPU kernels need AVX2, AVX-512 or ARM's dot products, and found none of them "
            "that they may use: ggml's kernels compute, more slowly");
    }
}

std::optional<AdapterInfo> describe(const RuntimeConfig& config, const Adapter* adapter) {
    if (adapter == nullptr) {
        return std::nullopt;
    }
    return AdapterInfo{.path = config.adapter_path.string(),
                       .exit_layer = adapter->exit_layer(),
                       .n_heads = adapter->config().n_heads,
                       .n_parameters = adapter->n_parameters()};
}

std::string describe(const RopeConfig& rope) {
    const std::string pairing = rope.pairing == RopePairing::halves ? "neox" : "norm";
    return rope.scaling == "none"
               ? pairing
               : concat(pairing, ", ", rope.scaling, " x", 1.0f / rope.freq_scale);
}

}  // namespace

std::string_view version() {
    return KNAP_VERSION;
}

std::span<const StrategyInfo> strategies() {
    return list_strategies();
}

std::vector<DeviceInfo> devices(std::span<const std::string> workers) {
    std::vector<DeviceEntry> entries = list_devices();
    for (const std::string& worker : workers) {
        const WorkerConnection connection(parse_worker_address(worker));
        std::ranges::copy(connection.devices(), std::back_inserter(entries));
    }
    std::vector<DeviceInfo> infos;
    for (const DeviceEntry& entry : entries) {
        infos.push_back({.name = entry.name,
                         .description = entry.description,
                         .is_cpu = entry.is_cpu,
                         .memory_bytes = static_cast<std::int64_t>(entry.memory_bytes),
                         .free_bytes = static_cast<std::int64_t>(entry.free_bytes)});
    }
    return infos;
}

std::string_view to_string(StopReason reason) {
    switch (reason) {
        case StopReason::eos:
            return "eos";
        case StopReason::length:
            return "length";
        case StopReason::stop:
            return "stop";
        case StopReason::context:
            return "context";
        case StopReason::cancelled:
            return "cancelled";
    }
    return "";
}

std::string_view to_string(DraftSource source) {
    switch (source) {
        case DraftSource::none:
            return "none";
        case DraftSource::copy:
            return "copy";
        case DraftSource::plan:
            return "plan";
        case DraftSource::cascade:
            return "cascade";
        case DraftSource::forced:
            return "forced";
    }
    return "";
}

Engine::Impl::Impl(RuntimeConfig runtime_config)
    : config(checked(std::move(runtime_config))),
      file(open_checked(config.model_path)),
      model(read_config(file)),
      devices(config, model.n_layers),
      weights(load_weights(*this)),
      adapter(load_adapter(*this)),
      tokenizer(Tokenizer::load(config.model_path)),
      cost(model_cost(model, *weights, cache_row_bytes(*this))),
      fingerprint(knap::fingerprint(file, unused_factors(model, choose_context(config, model)))) {
    config.n_ctx = choose_context(config, model);
    config.devices = device_names(layers());
    config.n_threads = config.n_threads > 0 ? config.n_threads : default_thread_count();
    if (tokenizer->n_vocab() != model.n_vocab) {
        fail(config.model_path.string(), ": expected a vocabulary of ", model.n_vocab,
             " tokens, found ", tokenizer->n_vocab());
    }
    warn_without_kernels(*this);
    exact_rows = row_invariant_rows(*weights);
    if (pads_to_be_invariant() && !is_batch_invariant()) {
        exact_rows = 1;
    }
    device_models = new_device_models();
    if (adapter != nullptr) {
        adapter_devices = knap::new_device_models(
            adapter->config(), adapter->tensors(),
            LayerMap(head_backend(), adapter->config().n_layers), config, 1);
    }
    learned = open_learned_store(*this);
}

bool Engine::Impl::pads_to_be_invariant() const {
    return !weights->tensors().has_strips &&
           std::ranges::any_of(layers().shares(), [&](const LayerShare& share) {
               return choose_attention(model, config, *share.backend, exact_rows).exact_rows > 0;
           });
}

DeviceModels Engine::Impl::new_device_models() const {
    return knap::new_device_models(model, weights->tensors(), layers(), config, exact_rows);
}

bool Engine::Impl::is_batch_invariant() const {
    SingleSequence rows(model, new_device_models(), exact_rows, exact_rows);
    return knap::is_batch_invariant(rows.forward(), exact_rows);
}

Engine::Impl::Passes::Passes(Engine::Impl& engine)
    : pipeline(engine.model,
               engine.device_models,
               {.capacity = engine.config.n_ctx + kScratchRows,
                .n_sequences = engine.config.n_parallel,
                .n_rows = rows_with_scratch(engine.config),
                .max_rows = engine.config.n_ubatch,
                .exact_rows = engine.exact_rows}),
      scheduler(pipeline),
      pages(pipeline.memory()) {}

Engine::Impl::Passes& Engine::Impl::open_passes() {
    std::call_once(once_, [this] { passes_ = std::make_unique<Passes>(*this); });
    return *passes_;
}

Pipeline& Engine::Impl::pipeline() {
    return open_passes().pipeline;
}

Scheduler& Engine::Impl::passes() {
    return open_passes().scheduler;
}

PageSupply& Engine::Impl::pages() {
    return open_passes().pages;
}

std::unique_ptr<SingleSequence> Engine::Impl::single_sequence(int n_rows, int max_rows) {
    return std::make_unique<SingleSequence>(model, device_models, n_rows, max_rows, &passes());
}

Engine::Engine(RuntimeConfig config) {
    const Stopwatch watch;
    impl_ = std::make_unique<Impl>(std::move(config));
    impl_->load_ms = watch.elapsed_ms();
}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

const RuntimeConfig& Engine::config() const {
    return impl_->config;
}

ModelInfo Engine::info() const {
    const ModelConfig& model = impl_->model;
    const WeightStatistics& weights = impl_->weights->statistics();
    return {
        .path = impl_->config.model_path.string(),
        .name = model.name,
        .architecture = model.architecture,
        .n_layers = model.n_layers,
        .n_embd = model.n_embd,
        .n_heads = model.n_heads,
        .n_kv_heads = model.n_kv_heads,
        .head_dim = model.head_dim,
        .n_ff = model.n_ff,
        .n_vocab = model.n_vocab,
        .n_ctx_train = model.n_ctx_train,
        .has_tied_head = weights.has_tied_head,
        .n_parameters = weights.n_parameters,
        .file_bytes = static_cast<std::int64_t>(impl_->file.total_bytes()),
        .weight_bytes_per_token = weights.per_token_bytes,
        .cache_bytes_per_token =
            static_cast<std::int64_t>(cache_row_bytes(*impl_)) * model.n_layers,
        .windows = model.windows(),
        .types = weights.types,
        .chat_template = impl_->tokenizer->chat_template(),
        .bos_token = impl_->tokenizer->begin_of_sequence(),
        .eos_token = impl_->tokenizer->end_of_sequence(),
        .rope = describe(model.rope),
        .layers = describe_layers(model),
        .cuda_kernels = weights.cuda_kernels,
        .adapter = describe(impl_->config, impl_->adapter.get()),
    };
}

std::vector<Token> Engine::tokenize(std::string_view text, bool add_bos, bool parse_special) const {
    return impl_->tokenizer->encode(text, add_bos, parse_special);
}

std::string Engine::detokenize(std::span<const Token> tokens) const {
    return impl_->tokenizer->decode(tokens);
}

bool Engine::is_batch_invariant() const {
    const int n_rows = std::min(impl_->exact_rows, impl_->limits().exact_rows);
    return impl_->config.exact && n_rows > 1;
}

double Engine::cache_use() const {
    KvMemory& memory = impl_->pipeline().memory();
    const std::lock_guard lock(memory.mutex());
    const PagePool& pool = memory.pool();
    return 1.0 - static_cast<double>(pool.n_free()) / pool.n_pages();
}

}  // namespace knap
