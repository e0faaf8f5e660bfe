// The results of a benchmark program as a JSON file: every measured time, with the machine, the
// models and the command line. docs/tables.py turns such files into tables.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "knap/knap.h"

#include "base/text.h"
#include "device/backend.h"
#include "device/device_identity.h"
#include "measure.h"
#include "model/config.h"
#include "runtime/files/json_file.h"
#include "tools/measure/bench_context.h"
#include "tools/measure/report/bench_setup_json.h"

namespace knap::bench {

// To a tenth of a microsecond.
inline std::vector<double> rounded(std::vector<double> times_ms) {
    for (double& time : times_ms) {
        time = std::round(time * 1e4) / 1e4;
    }
    return times_ms;
}

// A command line without the folders that differ from machine to machine.
inline std::string command_text(int argc, const char* const* argv) {
    std::string text;
    for (int i = 0; i < argc; ++i) {
        const std::string_view word = argv[i];
        text += concat(i == 0 ? "" : " ", word.substr(word.find_last_of('/') + 1));
    }
    return text;
}

class BenchJson {
  public:
    // With an empty path nothing is written.
    BenchJson(std::filesystem::path path, int argc, const char* const* argv)
        : path_(std::move(path)) {
        file_ = {{"format", 1},
                 {"program", std::filesystem::path(argv[0]).filename().string()},
                 {"knap", version()},
                 {"command", command_text(argc, argv)},
                 {"host", nullptr},
                 {"device", nullptr},
                 {"threads", nullptr},
                 {"models", nlohmann::ordered_json::array()},
                 {"rows", nlohmann::ordered_json::array()}};
    }

    // Describes the machine and the model; before rows of that model are added.
    void add_model(const std::filesystem::path& path,
                   const ModelConfig& config,
                   const Backend& backend) {
        add_model(path, config, identify(backend).name, backend.n_threads());
    }
    // The same for a device that ggml may not know.
    void add_model(const std::filesystem::path& path,
                   const ModelConfig& config,
                   const std::string& device,
                   int n_threads) {
        if (path_.empty()) {
            return;
        }
        file_["host"] = to_json(describe_host());
        file_["device"] = device;
        file_["threads"] = n_threads;
        model_ = path.filename().string();
        file_["models"].push_back({{"file", model_},
                                   {"n_layers", config.n_layers},
                                   {"n_embd", config.n_embd},
                                   {"file_bytes", std::filesystem::file_size(path)}});
    }

    // Contestants that were timed in turn, and what they have in common. Each timed run handled
    // `n_tokens` tokens or steps. Rewrites the file, so an interrupted run keeps its rows.
    void add_row(const nlohmann::ordered_json& common,
                 const std::vector<Contestant>& contestants,
                 int n_tokens) {
        if (path_.empty()) {
            return;
        }
        nlohmann::ordered_json row{{"model", model_}};
        row.update(common);
        row["n_tokens"] = n_tokens;
        row["times_ms"] = nlohmann::ordered_json::object();
        for (const Contestant& contestant : contestants) {
            row["times_ms"][contestant.name] = rounded(contestant.times_ms);
        }
        file_["rows"].push_back(row);
        write_json_file(path_, file_);
    }

  private:
    std::filesystem::path path_;
    nlohmann::ordered_json file_;
    std::string model_;
};

}  // namespace knap::bench
