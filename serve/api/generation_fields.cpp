#include "serve/api/generation_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "base/quoted.h"
#include "serve/api/content_text.h"
#include "serve/api/error.h"
#include "serve/api/speculation_fields.h"

namespace knap {
namespace {

constexpr double kMaxBias = 100;

// Fields of other servers that would change the answer and that we do not have, with the value that
// asks for nothing.
struct Unsupported {
    const char* name;
    Json off;
};

const std::vector<Unsupported>& unsupported_fields() {
    static const std::vector<Unsupported> fields{
        {"functions", Json::array()}, {"function_call", "none"},       {"best_of", 1},
        {"audio", nullptr},           {"web_search_options", nullptr}, {"mirostat", 0},
        {"dry_multiplier", 0},        {"xtc_probability", 0},          {"typical_p", 1},
        {"top_n_sigma", -1},          {"dynatemp_range", 0},           {"samplers", nullptr},
        {"lora", Json::array()},
    };
    return fields;
}

void refuse_unsupported(Fields& fields) {
    for (const Unsupported& field : unsupported_fields()) {
        const Json* value = fields.find(field.name);
        if (value != nullptr && *value != field.off) {
            throw RequestError(
                {.message = concat(
                     "`", field.name, "`: not supported by this server; leave it out",
                     field.off.is_null() ? "" : concat(" or set it to ", to_text(field.off))),
                 .param = field.name,
                 .code = "unsupported_parameter"});
        }
    }
}

// They have no effect on an answer of this server.
void skip_harmless(Fields& fields, std::vector<std::string>& ignored) {
    for (const char* name : {"user", "store", "metadata", "service_tier", "safety_identifier",
                             "prompt_cache_key", "prompt_cache_retention", "verbosity"}) {
        if (fields.find(name) != nullptr) {
            ignored.emplace_back(name);
        }
    }
}

std::uint64_t random_seed() {
    std::random_device device;
    // Below 2^53, so that every client can read it back exactly.
    return (std::uint64_t{device()} << 32 | device()) >> 11;
}

void read_length(Fields& fields, GenerateOptions& options) {
    for (const char* name : {"max_completion_tokens", "max_tokens", "n_predict"}) {
        const auto value =
            fields.integer(name, {.min = -1, .max = std::numeric_limits<int>::max()});
        if (value) {
            options.n_predict = static_cast<int>(*value);
            break;
        }
    }
    // Known even where another one wins.
    for (const char* name : {"max_tokens", "n_predict"}) {
        fields.integer(name, {.min = -1, .max = std::numeric_limits<int>::max()});
    }
}

void read_sampling(Fields& fields, SamplingOptions& sampling) {
    fields.read("temperature", sampling.temperature, {.min = 0, .max = 2});
    fields.read("top_k", sampling.top_k, {.min = 0, .max = std::numeric_limits<int>::max()});
    fields.read("top_p", sampling.top_p, {.min = 0, .max = 1});
    // The engine wants more than 0; the most probable token alone is what 0 means.
    sampling.top_p = std::max(sampling.top_p, std::numeric_limits<float>::min());
    fields.read("min_p", sampling.min_p, {.min = 0, .max = 1});
    for (const char* name : {"repetition_penalty", "repeat_penalty"}) {
        fields.read(name, sampling.repeat_penalty, {.min = 0, .max = 1e6, .excludes_min = true});
    }
    fields.read("presence_penalty", sampling.presence_penalty, {.min = -2, .max = 2});
    fields.read("frequency_penalty", sampling.frequency_penalty, {.min = -2, .max = 2});
    fields.read("repeat_last_n", sampling.repeat_last_n,
                {.min = -1, .max = std::numeric_limits<int>::max()});
}

void read_seed(Fields& fields, const GenerationDefaults& defaults, SamplingOptions& sampling) {
    const auto seed = fields.integer("seed");
    if (seed ? *seed == -1 : !defaults.has_seed) {
        sampling.seed = random_seed();
    } else if (seed) {
        sampling.seed = static_cast<std::uint64_t>(*seed);
    }
}

Token read_token_id(const Json& value, int n_vocab) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
        value.get<std::int64_t>() >= n_vocab) {
        bad_field("logit_bias", "expected token ids of 0..", n_vocab - 1, ", found ", shown(value));
    }
    return value.get<Token>();
}

Json number_of_key(const std::string& key) {
    std::int64_t id = 0;
    const char* end = key.data() + key.size();
    const auto [rest, error] = std::from_chars(key.data(), end, id);
    return error == std::errc() && rest == end ? Json(id) : Json(key);
}

float read_bias(const Json& value) {
    constexpr float kBan = -std::numeric_limits<float>::infinity();
    if (value.is_boolean() && !value.get<bool>()) {
        return kBan;
    }
    if (!value.is_number() || std::abs(value.get<double>()) > kMaxBias) {
        bad_field("logit_bias", "expected ", -kMaxBias, "..", kMaxBias, " or false, found ",
                  shown(value));
    }
    const double bias = value.get<double>();
    return bias == -kMaxBias ? kBan : static_cast<float>(bias);
}

// {"id": bias} or [[id, bias]].
void read_logit_bias(Fields& fields, int n_vocab, SamplingOptions& sampling) {
    const Json* value = fields.find("logit_bias");
    if (value == nullptr) {
        return;
    }
    if (value->is_object()) {
        for (const auto& [key, bias] : value->items()) {
            sampling.logit_bias.emplace_back(read_token_id(number_of_key(key), n_vocab),
                                             read_bias(bias));
        }
        return;
    }
    if (!value->is_array()) {
        bad_field("logit_bias", "expected an object or an array of pairs, found ", kind_of(*value));
    }
    for (const Json& pair : *value) {
        if (!pair.is_array() || pair.size() != 2) {
            bad_field("logit_bias", "expected pairs [id, bias], found ", kind_of(pair));
        }
        sampling.logit_bias.emplace_back(read_token_id(pair[0], n_vocab), read_bias(pair[1]));
    }
}

void read_stop(Fields& fields, GenerateOptions& options) {
    const Json* value = fields.find("stop");
    if (value == nullptr) {
        return;
    }
    options.stop = read_strings(*value, "stop");
    if (options.stop.size() > kMaxStops) {
        bad_field("stop", "expected at most ", kMaxStops, " strings, found ", options.stop.size());
    }
    for (const std::string& text : options.stop) {
        if (text.empty() || text.size() > kMaxStopBytes) {
            bad_field("stop", "expected strings of 1..", kMaxStopBytes, " bytes, found one of ",
                      text.size());
        }
    }
}

void read_stream(Fields& fields, GenerationRequest& request) {
    fields.read("stream", request.streams);
    const Json* options = fields.object("stream_options");
    if (options == nullptr) {
        return;
    }
    if (!request.streams) {
        bad_field("stream_options", "expected \"stream\": true beside it, found none");
    }
    Fields inner(*options, "stream_options.");
    inner.read("include_usage", request.includes_usage);
}

// A text or its parts, {"type": "content", "content": ...}.
void read_prediction(Fields& fields, GenerationRequest& request) {
    const Json* value = fields.object("prediction");
    if (value == nullptr) {
        return;
    }
    Fields inner(*value, "prediction.");
    const std::string type = inner.string("type").value_or("content");
    if (type != "content") {
        bad_field("prediction.type", "expected content, found ", in_quotes(type));
    }
    const Json* content = inner.find("content");
    if (content == nullptr) {
        bad_field("prediction.content", "expected a string or an array of text parts, found none");
    }
    request.prediction = content_text(*content, "prediction.content");
}

}  // namespace

std::vector<std::string> read_strings(const Json& value, std::string_view name) {
    if (value.is_string()) {
        return {value.get<std::string>()};
    }
    const bool is_list = value.is_array() && std::ranges::all_of(value, [](const Json& one) {
                             return one.is_string();
                         });
    if (!is_list) {
        bad_field(name, "expected a string or an array of strings, found ",
                  value.is_array() ? std::string("an array with something else") : kind_of(value));
    }
    return value.get<std::vector<std::string>>();
}

GenerationRequest read_generation(Fields& fields, const GenerationDefaults& defaults, int n_vocab) {
    GenerationRequest request{.options = defaults.options};
    GenerateOptions& options = request.options;
    refuse_unsupported(fields);
    skip_harmless(fields, request.ignored);
    fields.string("model");
    read_length(fields, options);
    read_sampling(fields, options.sampling);
    read_seed(fields, defaults, options.sampling);
    read_logit_bias(fields, n_vocab, options.sampling);
    read_stop(fields, options);
    read_stream(fields, request);
    read_prediction(fields, request);
    fields.read("n", request.n_choices, {.min = 1, .max = kMaxChoices});
    fields.read("ignore_eos", options.ignore_eos);
    fields.read("cache_prompt", options.reuse_prompt);
    fields.read("timings_per_token", request.reports_timings);
    fields.read("return_progress", request.reports_progress);
    if (const Json* own = fields.object("knap")) {
        read_speculation(*own, request);
    }
    const std::vector<std::string> unknown = fields.unknown();
    request.ignored.insert(request.ignored.end(), unknown.begin(), unknown.end());
    return request;
}

}  // namespace knap
