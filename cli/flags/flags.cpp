#include "cli/flags/flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <utility>

#include "knap/chat.h"
#include "knap/knap.h"

#include "base/text_file.h"
#include "cli/flags/flag_group.h"
#include "cli/flags/scheduling.h"
#include "device/worker_address.h"
#include "tools/measure/contenders.h"

namespace knap {
namespace {

using namespace std::string_view_literals;

constexpr std::array kCacheTypes{std::pair{"f16"sv, CacheType::f16},
                                 std::pair{"f32"sv, CacheType::f32},
                                 std::pair{"q8_0"sv, CacheType::q8_0}};
constexpr std::array kKernelChoices{std::pair{"auto"sv, Kernels::automatic},
                                    std::pair{"ggml"sv, Kernels::ggml},
                                    std::pair{"own"sv, Kernels::own}};
constexpr std::array kAcceptanceRules{std::pair{"shared-noise"sv, AcceptanceRule::shared_noise},
                                      std::pair{"ratio"sv, AcceptanceRule::ratio},
                                      std::pair{"equality"sv, AcceptanceRule::equality}};
constexpr std::array kRepackModes{std::pair{"auto"sv, Repack::automatic},
                                  std::pair{"on"sv, Repack::on}, std::pair{"off"sv, Repack::off}};
constexpr std::array kThinking{std::pair{"auto"sv, true}, std::pair{"on"sv, true},
                               std::pair{"off"sv, false}};
constexpr std::array kReasoningFormats{std::pair{"auto"sv, true}, std::pair{"none"sv, false}};
constexpr std::array kOnOff{std::pair{"on"sv, true}, std::pair{"off"sv, false}};
constexpr std::array kFlashModes{std::pair{"off"sv, FlashAttention::off},
                                 std::pair{"on"sv, FlashAttention::on},
                                 std::pair{"auto"sv, FlashAttention::automatic}};

template <typename T, std::size_t Size>
std::span<const std::pair<std::string_view, T>> as_choices(
    const std::array<std::pair<std::string_view, T>, Size>& choices) {
    return choices;
}

// TOKEN(+/-)BIAS: "15043+1", "15043-0.5", "15043-inf".
std::pair<Token, float> parse_logit_bias(const std::string& text) {
    const char* end = text.data() + text.size();
    Token token = 0;
    float bias = 0;
    const auto id = std::from_chars(text.data(), end, token);
    const bool has_sign =
        id.ec == std::errc() && id.ptr != end && (*id.ptr == '+' || *id.ptr == '-');
    const char* size = has_sign ? id.ptr + 1 : end;
    const auto value = std::from_chars(size, end, bias);
    bias = has_sign && *id.ptr == '-' ? -bias : bias;
    const bool is_bias = value.ec == std::errc() && value.ptr == end && size != end &&
                         *size != '-' && !std::isnan(bias) &&
                         bias <= std::numeric_limits<float>::max();
    if (token < 0 || !is_bias) {
        fail_usage(
            "--logit-bias: expected TOKEN+BIAS or TOKEN-BIAS such as 15043+1 or 15043-inf, found '",
            text, "'");
    }
    return {token, bias};
}

std::uint64_t random_seed() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

std::uint64_t parse_seed(const std::string& text) {
    if (text == "-1") {
        return random_seed();
    }
    std::uint64_t seed = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seed);
    if (error != std::errc() || rest != end) {
        fail_usage("--seed: expected a whole number of at least 0, or -1 for a random one, found '",
                   text, "'");
    }
    return seed;
}

std::string parse_stop(const std::string& text) {
    if (text.empty()) {
        fail_usage("--stop: expected a text, found an empty one");
    }
    return text;
}

// The text of the file that constrains answers. `known` is what another flag has set.
std::string read_constraint(const char* flag, const std::string& path, const Grammar& known) {
    if (!known.text.empty()) {
        fail_usage(flag, ": expected one of --grammar-file and --json-schema-file, found both");
    }
    std::string text = read_text_file(path, flag);
    if (text.empty()) {
        fail_usage(flag, ": expected text in ", path, ", found an empty file");
    }
    return text;
}

std::string parse_effort(const std::string& text) {
    const bool is_word = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) != 0;
    });
    if (!is_word) {
        fail_usage("--reasoning-effort: expected a level such as low, medium or high, found '",
                   text, "'");
    }
    return text;
}

std::string parse_profile(const std::string& text) {
    if (text.empty()) {
        fail_usage("--profile: expected auto, none or a file, found ''");
    }
    return text;
}

std::string parse_strategy(const std::string& text) {
    if (!is_strategy(text)) {
        fail_usage("--strategy: expected ", strategy_names(), ", found '", text, "'");
    }
    return text;
}

void set_once(StrategySettings& settings, const std::string& key, const std::string& value) {
    if (!settings.emplace(key, value).second) {
        fail_usage("--strategy-options: expected ", key, " once, found it twice");
    }
}

// Returns an empty text for a strategy without settings.
std::string describe_options(const StrategyInfo& strategy) {
    std::size_t width = 0;
    for (const StrategyOptionInfo& option : strategy.options) {
        width = std::max(width, option.key.size() + 1 + option.values.size());
    }
    std::string text =
        strategy.options.empty() ? "" : concat("\n--strategy-options for ", strategy.name, ":\n");
    for (const StrategyOptionInfo& option : strategy.options) {
        const std::string left = concat(option.key, "=", option.values);
        text += concat("  ", left, std::string(width - left.size() + 2, ' '), option.help, "\n");
    }
    return text;
}

std::vector<std::string> parse_workers(const std::string& text) {
    const std::vector<std::string> workers = parse_words("--rpc", text);
    for (const std::string& worker : workers) {
        try {
            parse_worker_address(worker);
        } catch (const Error& error) {
            fail_usage(error.what());
        }
    }
    return workers;
}

HubReference parse_repository(const std::string& text) {
    try {
        return parse_hub_reference(text);
    } catch (const Error& error) {
        fail_usage("--hf-repo: ", error.what());
    }
}

void add_hub_flags(FlagGroup& group, HubSettings& hub) {
    group.custom({"--hf-repo", "USER/REPO[:QUANT]",
                  "model on huggingface.co, fetched once; QUANT may also be a file", "none"},
                 [&](const std::string& text) { hub.reference = parse_repository(text); });
    group.custom(
        {"--hf-file", "FILE", "file of that repository, in place of QUANT", "none"},
        [&](const std::string& text) { hub.file = parse_path("--hf-file", text).string(); });
    group.custom({"--hf-token", "TOKEN", "token for gated and private repositories", "$HF_TOKEN"},
                 [&](const std::string& text) { hub.token = text; });
    group.toggle("--offline", hub.is_offline,
                 "use -hf models only as they are in the cache folder");
}

void check_hub(const Settings& settings) {
    const bool has_repository = !settings.hub.reference.repository.empty();
    if (has_repository && !settings.runtime.model_path.empty()) {
        fail_usage("expected either --model or --hf-repo, found both");
    }
    if (!has_repository && !settings.hub.file.empty()) {
        fail_usage("--hf-file: expected --hf-repo with it, found none");
    }
}

}  // namespace

void add_model_flags(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Model");
    RuntimeConfig& runtime = settings.runtime;
    group.custom({"-m,--model", "FILE", "model in GGUF format", "the one `make model` fetches"},
                 [&](const std::string& text) { runtime.model_path = text; });
    add_hub_flags(group, settings.hub);
    group.custom({"--adapter", "FILE", "adapter for the strategy kangaroo, in GGUF format", "none"},
                 [&](const std::string& text) { runtime.adapter_path = text; });
    group.custom({"--device", "NAME,...", "devices to compute on; several share the layers",
                  "the first GPU, else the CPU"},
                 [&](const std::string& text) { runtime.devices = parse_words("--device", text); });
    group.integer("--n-gpu-layers", runtime.n_gpu_layers, {.min = -1},
                  "number of last layers to run on GPUs and workers; -1: all");
    group.custom(
        {"--rpc", "HOST:PORT,...", "workers to compute on, started with `knap worker`", "none"},
        [&](const std::string& text) { runtime.workers = parse_workers(text); });
    group.custom({"--rpc-timeout", "SECONDS", "how long to wait for a worker; 0: forever",
                  concat(runtime.worker_timeout_s)},
                 [&](const std::string& text) {
                     runtime.worker_timeout_s = parse_integer(
                         "--rpc-timeout", text, {.min = 0, .max = kMaxWorkerTimeoutSeconds});
                 });
    group.toggle("--list-devices", settings.lists_devices, "list the available devices and exit");
    group.choice("--flash-attn", runtime.flash_attention, as_choices(kFlashModes),
                 "use ggml's flash attention; auto: on GPUs and workers");
    group.choice("--cache-type-k", runtime.cache_type_k, as_choices(kCacheTypes),
                 "data type of cached keys");
    group.choice("--cache-type-v", runtime.cache_type_v, as_choices(kCacheTypes),
                 "data type of cached values; q8_0 needs -ctk q8_0 or -fa on");
}

void add_runtime_flags(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Model");
    RuntimeConfig& runtime = settings.runtime;
    group.integer("-c,--ctx-size", runtime.n_ctx, {.min = 0},
                  concat("context size in tokens; 0: the model's, at most ", kDefaultMaxContext));
    group.integer("-t,--threads", runtime.n_threads, {.min = 0, .max = kMaxThreads},
                  "number of threads; 0: one per available physical core");
    group.custom(
        {"--cpu-mask", "MASK", "CPUs to run on, as hexadecimal bits: 0x5 for 0 and 2", "all"},
        restrict_to_cpus);
    group.custom({"--prio", "N", "priority: -1 low, 0 normal, 1 medium, 2 high, 3 highest", "0"},
                 [](const std::string& text) {
                     set_priority(parse_integer("--prio", text,
                                                {.min = kLowestPriority, .max = kHighestPriority}));
                 });
    group.integer("--ubatch-size", runtime.n_ubatch, {.min = 1, .max = kMaxUbatch},
                  "maximum number of prompt tokens per pass");
    group.choice("--exact", runtime.exact, as_choices(kOnOff),
                 "keep verification batches bit-identical to plain decoding where possible");
    group.choice("--repack", runtime.repack, as_choices(kRepackModes),
                 "copy weights into the layouts of faster kernels");
    group.choice(
        "--kernels", runtime.kernels, as_choices(kKernelChoices),
        "auto: knap's kernels where they are faster; ggml: only ggml's; own: knap's wherever "
        "they exist");
}

void add_prompt_flags(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Prompt");
    group.custom({"-p,--prompt", "TEXT", "the prompt", ""},
                 [&](const std::string& text) { settings.prompt = text; });
    group.custom({"-f,--file", "FILE", "read the prompt from a file; -: standard input", ""},
                 [&](const std::string& text) { settings.prompt_file = text; });
    group.toggle("--raw", settings.is_raw, "use the prompt as it is, without a chat template");
}

void add_prompt_cache_flag(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Prompt");
    group.custom({"--prompt-cache", "FILE",
                  "reuse the computed prompt in FILE, and save this one there", ""},
                 [&](const std::string& text) { settings.prompt_cache = text; });
}

void add_chat_flags(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Prompt");
    group.custom({"--system,--system-prompt", "TEXT", "system message", "none"},
                 [&](const std::string& text) { settings.system = text; });
    add_chat_template_flag(app, settings);
    group.choice("--reasoning", settings.enables_thinking, as_choices(kThinking),
                 "whether models that can think do so before they answer; auto: as their template "
                 "says");
    group.custom({"--reasoning-effort", "LEVEL",
                  "how much to think, for templates that know levels: low, medium, high",
                  "that of the template"},
                 [&](const std::string& text) { settings.reasoning_effort = parse_effort(text); });
}

void add_chat_template_flag(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Prompt");
    group.custom({"--chat-template", "NAME", "chat template: chatml, llama3, ..., or Jinja",
                  "the model's own"},
                 [&](const std::string& text) { settings.chat_template = text; });
}

void add_reasoning_format_flag(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Generation");
    group.choice("--reasoning-format", settings.separates_thoughts, as_choices(kReasoningFormats),
                 "auto: thoughts go to standard error, the answer to standard output; none: all of "
                 "the text goes there, with its marks");
}

void add_idle_work_flag(CLI::App& app, Settings& settings, const char* title, const char* help) {
    FlagGroup group(app, title);
    group.choice("--idle-work", settings.works_when_idle, as_choices(kOnOff), help);
}

void add_generation_flags(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Generation");
    GenerateOptions& generate = settings.generate;
    group.integer("-n,--n-predict,--predict", generate.n_predict, {.min = -1},
                  "maximum number of tokens to generate; -1: until the text ends");
    group.custom({"--stop", "TEXT", "stop before this text appears; repeatable", "none"},
                 [&](const std::string& text) { generate.stop.push_back(parse_stop(text)); });
    group.toggle("--ignore-eos", generate.ignore_eos, "never choose an end-of-generation token");
    group.custom(
        {"--grammar-file", "FILE", "write only what the grammar in FILE (GBNF) allows", "none"},
        [&](const std::string& path) {
            generate.grammar.text = read_constraint("--grammar-file", path, generate.grammar);
        });
    group.custom(
        {"--json-schema-file", "FILE", "write only JSON that fits the schema in FILE", "none"},
        [&](const std::string& path) {
            settings.json_schema = read_constraint("--json-schema-file", path, generate.grammar);
            generate.grammar.text = json_schema_to_gbnf(settings.json_schema);
        });
}

void add_sampling_flags(CLI::App& app, Settings& settings) {
    const char* title =
        "Sampling, in this order: logit bias, penalties, temperature, top-k, top-p, min-p";
    FlagGroup group(app, title);
    SamplingOptions& sampling = settings.generate.sampling;
    group.custom(
        {"--logit-bias", "TOKEN(+/-)BIAS",
         "add to a token's logit, as in 15043+1 or 15043-inf; repeatable", "none"},
        [&](const std::string& text) { sampling.logit_bias.push_back(parse_logit_bias(text)); });
    group.number("--repeat-penalty", sampling.repeat_penalty, {.min = 0, .excludes_min = true},
                 "penalty factor for tokens that have occurred; 1: off");
    group.number("--frequency-penalty", sampling.frequency_penalty, {},
                 "penalty per occurrence of a token; 0: off");
    group.number("--presence-penalty", sampling.presence_penalty, {},
                 "penalty for tokens that have occurred; 0: off");
    group.integer("--repeat-last-n", sampling.repeat_last_n, {.min = -1},
                  "number of recent tokens that penalties look at; 0: none, -1: all");
    add_temperature_flags(app, settings, title);
}

void add_temperature_flags(CLI::App& app, Settings& settings, const char* title) {
    FlagGroup group(app, title);
    SamplingOptions& sampling = settings.generate.sampling;
    group.number("--temp,--temperature", sampling.temperature, {.min = 0},
                 "temperature; 0: greedy");
    group.integer("--top-k", sampling.top_k, {.min = 0}, "keep the N most probable tokens; 0: off");
    group.number("--top-p", sampling.top_p, {.min = 0, .max = 1, .excludes_min = true},
                 "keep the most probable tokens up to this total probability; 1: off");
    group.number("--min-p", sampling.min_p, {.min = 0, .max = 1},
                 "keep tokens at least X times as probable as the best one; 0: off");
    group.custom({"-s,--seed", "N", "seed for sampling; -1: a random one", concat(sampling.seed)},
                 [&](const std::string& text) { sampling.seed = parse_seed(text); });
}

void add_profile_flag(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Speculation");
    group.custom(
        {"--profile", "auto|none|FILE",
         "costs and plans saved by `knap profile`; auto: those of this model and machine", "auto"},
        [&](const std::string& text) { settings.runtime.profile = parse_profile(text); });
}

void add_memory_flag(CLI::App& app, Settings& settings, bool is_on_by_default) {
    bool& memory = settings.runtime.memory;
    app.preparse_callback([&memory, is_on_by_default](std::size_t) { memory = is_on_by_default; });
    memory = is_on_by_default;  // for the help
    FlagGroup(app, "Speculation")
        .choice("--memory", memory, as_choices(kOnOff),
                "keep what is learned about drafting (numbers, no text) for later runs");
    memory = false;
}

void add_assumption_flag(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Speculation");
    group.custom({"--assume-acceptance", "X",
                  "accept drafts at random at this rate: a projection of speed", "off"},
                 [&](const std::string& text) {
                     settings.generate.speculation.assume_acceptance =
                         parse_number("--assume-acceptance", text, {.min = 0, .max = 1});
                 });
}

AcceptanceChoices acceptance_rules() {
    return kAcceptanceRules;
}

void add_speculation_flags(CLI::App& app, Settings& settings) {
    FlagGroup group(app, "Speculation");
    SpeculationOptions& speculation = settings.generate.speculation;
    group.custom(
        {"--strategy", "NAME", "drafting strategy, see the list below", speculation.strategy},
        [&](const std::string& text) { speculation.strategy = parse_strategy(text); });
    group.integer("--draft-max", speculation.draft_max, {.min = 0, .max = kMaxDraft},
                  concat("maximum draft length, up to ", kMaxDraft, "; 0: the strategy's default"));
    StrategySettings& own = speculation.settings;
    group.custom(
        {"--draft-plan", "PLAN", "plan to draft with, such as a=w16+256,m3-5=skip", "none"},
        [&](const std::string& text) { set_once(own, "plan", text); });
    group.custom(
        {"--plan-file", "FILE", "draft with the plan and the draft length that `knap search` saved",
         "none"},
        [&](const std::string& text) { settings.plan_file = parse_path("--plan-file", text); });
    group.custom({"--draft-width", "N", "candidates per draft position, with --draft-plan", "1"},
                 [&](const std::string& text) {
                     parse_integer("--draft-width", text, {.min = 1, .max = kMaxDraftWidth});
                     set_once(own, "width", text);
                 });
    group.custom(
        {"--exit-confidence", "X", "stop drafting after a token less probable than this; 0: never",
         "depends on the strategy"},
        [&](const std::string& text) {
            parse_number("--exit-confidence", text, {.min = 0, .max = 1});
            set_once(own, "exit-confidence", text);
        });
    group.custom({"--strategy-options", "LIST",
                  "settings of the strategy, KEY=VALUE,...: see the lists below", "none"},
                 [&](const std::string& text) {
                     for (const auto& [key, value] : parse_settings(text)) {
                         set_once(own, key, value);
                     }
                 });
    group.choice("--acceptance", speculation.acceptance, as_choices(kAcceptanceRules),
                 "rule for accepting drafted tokens when sampling");
    add_assumption_flag(app, settings);
    add_profile_flag(app, settings);
    add_memory_flag(app, settings, true);
    group.toggle("--show-draft", settings.shows_draft,
                 "on a terminal, colour accepted tokens green and corrections yellow");
}

std::string describe_strategies() {
    std::size_t width = 0;
    for (const StrategyInfo& strategy : strategies()) {
        width = std::max(width, strategy.name.size());
    }
    std::string text = "Strategies:\n";
    for (const StrategyInfo& strategy : strategies()) {
        const std::string gap(width - strategy.name.size() + 2, ' ');
        text += concat("  ", strategy.name, gap, strategy.summary, "\n");
    }
    for (const StrategyInfo& strategy : strategies()) {
        text += describe_options(strategy);
    }
    return text;
}

void add_json_flag(CLI::App& app, Settings& settings) {
    FlagGroup(app, "Output")
        .toggle("--json", settings.wants_json, "print one JSON object on standard output");
}

void add_common_flags(CLI::App& app, Settings& settings) {
    FlagGroup(app, "Output")
        .toggle("-v,--verbose", settings.is_verbose, "log more to standard error");
    app.set_help_flag("-h,--help", "print this help")->group("Output");
}

void check_settings(const Settings& settings) {
    check_hub(settings);
    const RuntimeConfig& runtime = settings.runtime;
    const bool may_use_kernel =
        runtime.kernels != Kernels::ggml && runtime.cache_type_k == CacheType::q8_0;
    if (runtime.cache_type_v == CacheType::q8_0 && runtime.flash_attention != FlashAttention::on &&
        !may_use_kernel) {
        fail_usage(
            "--cache-type-v: expected -ctk q8_0 (without --kernels ggml) or -fa on with q8_0, "
            "found neither");
    }
    if (settings.prompt && settings.prompt_file) {
        fail_usage("expected either --prompt or --file, found both");
    }
    if (settings.is_raw && !settings.chat_template.empty()) {
        fail_usage("expected either --raw or --chat-template, found both");
    }
    if (settings.is_raw && !settings.system.empty()) {
        fail_usage("--system: expected a chat template for the system message, found --raw");
    }
}

}  // namespace knap
