#include "tools/measure/report/bench_setup_json.h"

#include <limits>
#include <string>

#include "base/quoted.h"
#include "base/text.h"
#include "tools/measure/report/bench_json.h"
#include "tools/peer/peer_names.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kMaxLayers = 4096;

// A number as the user gave it: 0.95, not the nearest float's 0.949999988.
double as_given(float value) {
    return std::stod(concat(value));
}

float float_in(const json& object, const char* name) {
    return static_cast<float>(amount_in(object, name));
}

std::string text_from(const json& value) {
    if (!value.is_string()) {
        fail("expected a text, found ", value.type_name());
    }
    return value.get<std::string>();
}

int depth_from(const json& value) {
    if (!value.is_number_unsigned() || value > std::numeric_limits<int>::max()) {
        fail("expected a number of tokens, found ", printable(value.dump()));
    }
    return value.get<int>();
}

std::vector<std::string> texts_in(const json& object, const char* name) {
    return read_list(object, name, name, text_from);
}

// Keeps all 64 bits; a double would keep 53.
std::uint64_t seed_in(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_unsigned()) {
        fail("expected a whole number `", name, "`, found ",
             found == object.end() ? "none" : found->type_name());
    }
    return found->get<std::uint64_t>();
}

std::vector<std::string> peers_in(const json& object, const char* name) {
    const auto text = unless_null(object, name, text_in);
    std::vector<std::string> peers;
    for (const std::string_view peer : text ? split(*text, ',') : std::vector<std::string_view>()) {
        if (!is_peer(peer)) {
            fail("expected `", name, "` null or a list of ", peer_names(), ", found ",
                 in_quotes(*text));
        }
        peers.emplace_back(peer);
    }
    return peers;
}

// The options that a file records; a benchmark does not change the others.
SamplingOptions sampling_from(const json& settings) {
    return {.temperature = float_in(settings, "temperature"),
            .top_k = count_in(settings, "top_k"),
            .top_p = float_in(settings, "top_p"),
            .min_p = float_in(settings, "min_p"),
            .seed = seed_in(settings, "seed")};
}

}  // namespace

ordered_json to_json(const BenchHost& host) {
    return {{"cpu", host.cpu},
            {"n_cores", host.n_cores},
            {"isa", host.isa},
            {"memory_bytes", host.memory_bytes},
            {"system", host.system}};
}

BenchHost host_from(const json& object) {
    return {.cpu = text_in(object, "cpu"),
            .n_cores = count_in(object, "n_cores"),
            .isa = text_in(object, "isa"),
            .memory_bytes = large_count_in(object, "memory_bytes"),
            .system = text_in(object, "system")};
}

ordered_json to_json(const BenchModel& model) {
    return {{"file", model.file},
            {"name", model.name},
            {"architecture", model.architecture},
            {"n_layers", model.n_layers},
            {"n_embd", model.n_embd},
            {"n_parameters", model.n_parameters},
            {"types", model.types},
            {"file_bytes", model.file_bytes},
            {"fingerprint", model.fingerprint}};
}

BenchModel model_from(const json& object) {
    return {.file = text_in(object, "file"),
            .name = text_in(object, "name"),
            .architecture = text_in(object, "architecture"),
            .n_layers = integer_in(object, "n_layers", 1, kMaxLayers),
            .n_embd = positive_count_in(object, "n_embd"),
            .n_parameters = large_count_in(object, "n_parameters"),
            .types = text_in(object, "types"),
            .file_bytes = large_count_in(object, "file_bytes"),
            .fingerprint = text_in(object, "fingerprint")};
}

ordered_json to_json(const BenchSettings& settings) {
    const SamplingOptions& sampling = settings.sampling;
    return {{"threads", settings.threads},
            {"n_ctx", settings.n_ctx},
            {"n_predict", settings.n_predict},
            {"parallel", settings.parallel},
            {"limit", settings.limit},
            {"skip", settings.skip},
            {"max_prompt_tokens", settings.max_prompt_tokens},
            {"repeat", settings.repeat},
            {"depths", settings.depths},
            {"strategies", settings.strategies},
            {"adapter", or_null(settings.adapter)},
            {"acceptance", settings.acceptance},
            {"temperature", as_given(sampling.temperature)},
            {"top_k", sampling.top_k},
            {"top_p", as_given(sampling.top_p)},
            {"min_p", as_given(sampling.min_p)},
            {"seed", sampling.seed},
            {"assume_acceptance", or_null(settings.assume_acceptance)},
            {"peer", settings.peers.empty() ? ordered_json(nullptr)
                                            : ordered_json(join(settings.peers, ","))},
            {"cache_type_k", settings.cache_type_k},
            {"cache_type_v", settings.cache_type_v},
            {"kernels", settings.kernels},
            {"exact", or_null(settings.exact)},
            {"fresh_strategies", or_null(settings.fresh_strategies)},
            {"profile", or_null(settings.profile)},
            {"memory", or_null(settings.memory)},
            {"data", settings.data}};
}

BenchSettings settings_from(const json& object) {
    return {.threads = count_in(object, "threads"),
            .n_ctx = count_in(object, "n_ctx"),
            .n_predict = count_in(object, "n_predict"),
            .parallel = if_known(object, "parallel", positive_count_in).value_or(1),
            .limit = count_in(object, "limit"),
            .skip = if_known(object, "skip", count_in).value_or(0),
            .max_prompt_tokens = count_in(object, "max_prompt_tokens"),
            .repeat = count_in(object, "repeat"),
            .depths = read_list(object, "depths", "depths", depth_from),
            .strategies = texts_in(object, "strategies"),
            .adapter = unless_null(object, "adapter", text_in),
            .acceptance = texts_in(object, "acceptance"),
            .sampling = sampling_from(object),
            .assume_acceptance = unless_null(object, "assume_acceptance", share_in),
            .peers = peers_in(object, "peer"),
            .cache_type_k = text_in(object, "cache_type_k"),
            .cache_type_v = text_in(object, "cache_type_v"),
            .kernels = text_in(object, "kernels"),
            .exact = if_known(object, "exact", flag_in),
            .fresh_strategies = if_known(object, "fresh_strategies", flag_in),
            .profile = if_known(object, "profile", flag_in),
            .memory = if_known(object, "memory", flag_in),
            .data = texts_in(object, "data")};
}

}  // namespace knap
