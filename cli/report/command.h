// `knap report`: turns results of `knap bench` into one HTML page.
#pragma once

#include <filesystem>
#include <vector>

#include <CLI/App.hpp>

namespace knap {

struct ReportArgs {
    std::vector<std::filesystem::path> files;
    std::filesystem::path output = "report.html";
};

CLI::App* add_report(CLI::App& root, ReportArgs& args);
// Returns the exit code.
int run_report(const ReportArgs& args);

}  // namespace knap
