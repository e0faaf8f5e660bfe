#include "support/loaded_model.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

#include "device/device_list.h"

namespace knap::test {
namespace {

DeviceModels device_models(const LoadedModel& model, const ForwardOptions& options) {
    DeviceModels devices;
    for (const LayerShare& share : model.layers.shares()) {
        const AttentionPolicy usual = choose_attention(
            model.config, {.cache_type_k = options.type_k, .cache_type_v = options.type_v},
            *share.backend);
        const CacheTypes types{options.type_k, options.type_v};
        const AttentionPolicy policy{options.path.value_or(usual.path), options.exact_rows};
        const ModelTensors& tensors = model.weights->tensors();
        devices.push_back(
            options.uses_graphs
                ? std::make_unique<GgmlDeviceModel>(model.config, tensors, share, types, policy)
                : new_device_model(model.config, tensors, share, types, policy));
    }
    return devices;
}

std::vector<std::unique_ptr<Backend>> more_backends(std::size_t n_shares, int n_threads) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (std::size_t i = 1; i < n_shares; ++i) {
        backends.push_back(std::make_unique<Backend>(n_threads));
    }
    return backends;
}

LayerMap map_layers(LoadedModel& model, const std::vector<int>& split) {
    if (split.empty()) {
        return LayerMap(model.backend, model.config.n_layers);
    }
    std::vector<LayerCount> counts;
    for (std::size_t i = 0; i < split.size(); ++i) {
        counts.push_back({i == 0 ? model.backend : *model.others[i - 1], split[i]});
    }
    return LayerMap(counts);
}

}  // namespace

LoadedModel::LoadedModel(const std::filesystem::path& path,
                         Repack repack,
                         int n_threads,
                         Kernels kernels,
                         ggml_backend_dev_t device,
                         const std::vector<int>& split)
    : file(GgufFile::open(path)),
      config(read_config(file)),
      backend(device != nullptr ? device : cpu_device(), n_threads),
      others(more_backends(split.size(), n_threads)),
      layers(map_layers(*this, split)),
      weights(Weights::load(file, config, layers, {.repack = repack, .kernels = kernels}, {})) {}

ForwardRig::ForwardRig(LoadedModel& loaded, const ForwardOptions& options)
    : model(loaded),
      single(loaded.config, device_models(loaded, options), options.capacity, options.n_ubatch),
      cache(single.sequence()),
      forward(single.forward()) {
    if (HeadSubset::is_possible(*loaded.weights)) {
        draft_head.emplace(*loaded.weights, *loaded.layers.last().backend,
                           std::span<const Token>());
        forward.set_draft_head(*draft_head);
    }
}

std::vector<std::vector<float>> ForwardRig::run(ForwardRequest request) {
    const auto n_embd = static_cast<std::size_t>(model.config.n_embd);
    const auto n_vocab = static_cast<std::size_t>(model.config.n_vocab);
    std::vector<int> logit_rows(request.tokens.size() + request.hidden.size() / n_embd);
    std::iota(logit_rows.begin(), logit_rows.end(), 0);
    request.logit_rows = logit_rows;
    const ForwardResult result = forward.run(request);
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < logit_rows.size(); ++i) {
        const auto row = result.logits.subspan(i * n_vocab, n_vocab);
        rows.emplace_back(row.begin(), row.end());
    }
    return rows;
}

std::vector<std::vector<float>> ForwardRig::feed(std::span<const Token> tokens,
                                                 std::span<const int> passes) {
    std::vector<std::vector<float>> rows;
    for (const int n_rows : passes) {
        auto of_pass = run({.tokens = tokens.first(static_cast<std::size_t>(n_rows)),
                            .first_row = cache.committed()});
        std::move(of_pass.begin(), of_pass.end(), std::back_inserter(rows));
        cache.commit(cache.committed() + n_rows);
        tokens = tokens.subspan(static_cast<std::size_t>(n_rows));
    }
    return rows;
}

std::vector<std::vector<float>> ForwardRig::feed(std::span<const Token> tokens) {
    const int n_rows = static_cast<int>(tokens.size());
    return feed(tokens, std::span(&n_rows, 1));
}

std::vector<std::byte> ForwardRig::cache_bytes() const {
    const std::size_t layer_bytes =
        cache.saved_row_bytes() * static_cast<std::size_t>(cache.committed());
    std::vector<std::byte> bytes(layer_bytes * static_cast<std::size_t>(model.config.n_layers));
    for (int layer = 0; layer < model.config.n_layers; ++layer) {
        cache.read_rows(layer, cache.committed(),
                        bytes.data() + layer_bytes * static_cast<std::size_t>(layer));
    }
    return bytes;
}

std::vector<Token> random_tokens(int n, int n_vocab, unsigned seed) {
    std::mt19937 engine(seed);
    std::vector<Token> tokens;
    for (int i = 0; i < n; ++i) {
        tokens.push_back(static_cast<Token>(engine() % static_cast<unsigned>(n_vocab)));
    }
    return tokens;
}

}  // namespace knap::test
