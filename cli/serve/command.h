// `knap serve`: a server that speaks OpenAI's HTTP interface.
#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"
#include "serve/server.h"

namespace knap {

struct ServeArgs {
    // Of its own: a server has other defaults than a single run.
    Settings settings;
    ServerConfig server;
    ServiceConfig service;
    int n_cache_rows = 0;
    int timeout_s = 600;
    std::vector<std::filesystem::path> key_files;
    std::filesystem::path template_file;
    bool needs_no_key = false;  // on addresses that others can reach
    bool hides_slots = false;
    bool hides_metrics = false;
};

CLI::App* add_serve(CLI::App& root, ServeArgs& args);
// Serves until a signal arrives; returns the exit code.
int run_serve(const CLI::App& app, ServeArgs args, const Environment& environment);

}  // namespace knap
