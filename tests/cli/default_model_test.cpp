// Commands without -m.
#include "cli/command.h"

namespace knap::default_model_test {
namespace {

ProcessResult info_in(const std::vector<std::pair<std::string, std::string>>& environment) {
    ProcessRequest request;
    request.arguments = {"info", "--json"};
    request.environment = environment;
    return run_knap(request);
}

// Creates a cache folder with a tiny model as the default model.
std::filesystem::path make_cache(const std::string& name) {
    const auto cache = temporary_folder() / name;
    std::filesystem::create_directories(cache / "models");
    std::filesystem::copy_file(tiny_model(), cache / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf");
    return cache;
}

TEST(DefaultModel, MissingModelErrorTellsHowToFetchIt) {
    const auto cache = (temporary_folder() / "nothing_here").string();
    expect_error(info_in({{"KNAP_CACHE", cache}}), 1,
                 cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    expect_error(info_in({{"KNAP_CACHE", cache}}), 1, "use -m FILE, or fetch it with `make model`");
}

TEST(DefaultModel, MissingCacheFolderErrorNamesTheVariables) {
    expect_error(info_in({{"KNAP_CACHE", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}}), 1,
                 "set KNAP_CACHE or HOME");
}

TEST(DefaultModel, IsInTheFirstCacheFolderThatIsSet) {
    const auto cache = make_cache("user/.cache/knap");
    const auto path = (cache / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").string();
    const auto home = (temporary_folder() / "user").string();
    const auto found = [](const ProcessResult& result) {
        return nlohmann::json::parse(result.output)["path"];
    };
    EXPECT_EQ(found(info_in({{"KNAP_CACHE", cache.string()}, {"HOME", "/nowhere"}})), path);
    EXPECT_EQ(
        found(info_in(
            {{"KNAP_CACHE", ""}, {"XDG_CACHE_HOME", home + "/.cache"}, {"HOME", "/nowhere"}})),
        path);
    EXPECT_EQ(found(info_in({{"KNAP_CACHE", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", home}})), path);
}

TEST(DefaultModel, WrongUsageIsReportedBeforeAMissingModel) {
    ProcessRequest request;
    request.arguments = {"run"};
    request.environment = {{"KNAP_CACHE", "/nowhere"}};
    expect_error(run_knap(request), 2, "no prompt");
}

}  // namespace
}  // namespace knap::default_model_test
