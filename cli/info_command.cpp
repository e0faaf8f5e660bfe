#include "cli/info_command.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "knap/chat.h"

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/report/report.h"

namespace knap {
namespace {

// The bytes that a context of `n_tokens` needs.
struct LengthCost {
    int n_tokens = 0;
    std::int64_t cache_bytes = 0;
    std::int64_t read_bytes_per_token = 0;  // to decode one token after that many
};

std::vector<int> default_lengths(int n_ctx_train) {
    std::vector<int> lengths;
    for (const int length : {1024, 4096, 16384, 65536}) {
        if (length < n_ctx_train) {
            lengths.push_back(length);
        }
    }
    lengths.push_back(n_ctx_train);
    return lengths;
}

// All layers keep all rows; those with a window read the rows that it shows.
std::int64_t cache_bytes_read(const ModelInfo& info, int n_tokens) {
    std::int64_t n_rows = 0;
    for (const int window : info.windows) {
        n_rows += window == 0 ? n_tokens : std::min(n_tokens, window - 1);
    }
    return n_rows * info.cache_bytes_per_token / info.n_layers;
}

std::vector<LengthCost> length_costs(const ModelInfo& info, const std::vector<int>& wanted) {
    std::vector<LengthCost> costs;
    for (const int n_tokens : wanted.empty() ? default_lengths(info.n_ctx_train) : wanted) {
        costs.push_back({n_tokens, n_tokens * info.cache_bytes_per_token,
                         info.weight_bytes_per_token + cache_bytes_read(info, n_tokens)});
    }
    return costs;
}

std::string list_types(const ModelInfo& info) {
    return join(info.types, ", ",
                [](const auto& type) { return concat(type.second, " ", type.first); });
}

nlohmann::ordered_json to_json(const std::optional<AdapterInfo>& adapter) {
    if (!adapter) {
        return nullptr;
    }
    return {{"path", adapter->path},
            {"exit_layer", adapter->exit_layer},
            {"n_heads", adapter->n_heads},
            {"n_parameters", adapter->n_parameters}};
}

nlohmann::ordered_json to_json(const ModelInfo& info, const std::vector<LengthCost>& costs) {
    auto types = nlohmann::ordered_json::object();
    for (const auto& [type, n_tensors] : info.types) {
        types[type] = n_tensors;
    }
    auto lengths = nlohmann::ordered_json::array();
    for (const LengthCost& cost : costs) {
        lengths.push_back({{"n_tokens", cost.n_tokens},
                           {"cache_bytes", cost.cache_bytes},
                           {"read_bytes_per_token", cost.read_bytes_per_token}});
    }
    return {
        {"path", info.path},
        {"name", info.name},
        {"architecture", info.architecture},
        {"n_layers", info.n_layers},
        {"n_embd", info.n_embd},
        {"n_heads", info.n_heads},
        {"n_kv_heads", info.n_kv_heads},
        {"head_dim", info.head_dim},
        {"n_ff", info.n_ff},
        {"n_vocab", info.n_vocab},
        {"n_ctx_train", info.n_ctx_train},
        {"has_tied_head", info.has_tied_head},
        {"rope", info.rope},
        {"layers", info.layers},
        {"chat_template", info.chat_template},
        {"n_parameters", info.n_parameters},
        {"file_bytes", info.file_bytes},
        {"types", types},
        {"weight_bytes_per_token", info.weight_bytes_per_token},
        {"cache_bytes_per_token", info.cache_bytes_per_token},
        {"cuda_kernels", info.cuda_kernels},
        {"adapter", to_json(info.adapter)},
        {"lengths", lengths},
    };
}

// What the model's chat template writes.
std::string template_name(const Engine& engine, const ModelInfo& info) {
    if (info.chat_template.empty()) {
        return "";
    }
    try {
        return ChatFormat(engine).name();
    } catch (const Error&) {
        return "unreadable";
    }
}

std::string in_millions(std::int64_t count) {
    return concat(format_fixed(static_cast<double>(count) / 1e6, 1), " million");
}

std::string to_table(const ModelInfo& info, const std::vector<LengthCost>& costs) {
    std::ostringstream out;
    const auto row = [&out](const char* label, const auto&... parts) {
        out << std::left << std::setw(18) << label;
        (out << ... << parts) << '\n';
    };
    row("model", info.path);
    row("name", info.name);
    row("architecture", info.architecture);
    row("parameters", in_millions(info.n_parameters));
    row("file size", format_bytes(info.file_bytes));
    row("tensor types", list_types(info));
    row("layers", info.n_layers, info.layers.empty() ? "" : ": ", info.layers);
    row("heads", info.n_heads, ", KV heads ", info.n_kv_heads, ", head size ", info.head_dim);
    row("embedding", info.n_embd, ", feed-forward ", info.n_ff);
    row("vocabulary", info.n_vocab,
        info.has_tied_head ? ", head tied to the embedding" : ", separate head");
    row("rope", info.rope);
    row("context", info.n_ctx_train);
    row("chat template", info.chat_template.empty() ? "none" : info.chat_template);
    if (info.cuda_kernels != "no NVIDIA GPU") {
        row("CUDA kernels", info.cuda_kernels);
    }
    if (info.adapter) {
        row("adapter", info.adapter->path, ", after layer ", info.adapter->exit_layer, ", ",
            in_millions(info.adapter->n_parameters), " parameters");
    }
    out << "\n   context        cache    read per token\n" << std::right;
    for (const LengthCost& cost : costs) {
        out << std::setw(10) << cost.n_tokens << std::setw(13) << format_bytes(cost.cache_bytes)
            << std::setw(18) << format_bytes(cost.read_bytes_per_token) << '\n';
    }
    return out.str();
}

}  // namespace

CLI::App* add_info(CLI::App& root, Settings& settings, InfoArgs& args) {
    CLI::App* app =
        root.add_subcommand("info", "Shows the shape of a model and the memory it needs");
    add_model_flags(*app, settings);
    FlagGroup(*app, "Output")
        .custom({"--lengths", "N,N,...", "context lengths to show memory for",
                 "several, up to the model's"},
                [&](const std::string& text) {
                    args.lengths = parse_integers("--lengths", text, {.min = 1});
                });
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    return app;
}

int run_info(const Settings& settings, const InfoArgs& args, const Environment& environment) {
    RuntimeConfig config = settings.runtime;
    config.repack = Repack::off;  // nothing is computed: leave the weights in the file
    const Engine engine = load_engine(std::move(config), settings.hub, environment);
    ModelInfo info = engine.info();
    info.chat_template = template_name(engine, info);
    const auto costs = length_costs(info, args.lengths);
    TextOutput output;
    if (settings.wants_json) {
        write_json(output, to_json(info, costs));
    } else {
        output.write(to_table(info, costs));
    }
    return kExitDone;
}

}  // namespace knap
