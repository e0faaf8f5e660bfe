// `knap profile`.
#include <algorithm>

#include <signal.h>

#include "cli/command.h"

namespace knap::cli_profile_test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Every test has its own folder.
class Profile : public ::testing::Test {
  protected:
    Profile() { fs::create_directories(folder_); }
    ~Profile() override { fs::remove_all(folder_); }

    ProcessRequest request(const Words& flags) const {
        ProcessRequest request;
        request.arguments =
            on_tiny_model("profile") + Words{"-c", "256", "--seconds", "0.2"} + flags;
        request.environment = {{"KNAP_CACHE_DIR", cache_.string()}};
        return request;
    }
    ProcessResult profile(const Words& flags) const { return run_knap(request(flags)); }

    // The files in the cache folder whose names start with `beginning`.
    std::vector<fs::path> cached(const std::string& beginning) const {
        std::vector<fs::path> found;
        if (fs::exists(cache_)) {
            for (const auto& entry : fs::directory_iterator(cache_)) {
                if (entry.path().filename().string().starts_with(beginning)) {
                    found.push_back(entry.path());
                }
            }
        }
        return found;
    }

    fs::path folder_ = temporary_folder() / "profile_test";
    fs::path cache_ = folder_ / "cache" / "knap";
};

TEST_F(Profile, TableNamesEveryPartAndWhereItIsSaved) {
    const auto result = profile({});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error, "");
    ASSERT_EQ(cached("profile-").size(), 1u);
    for (const std::string text :
         {"1 thread\n", "kinds of passes measured; the error of the fit is ", "  fixed ", "  head ",
          "  MLP ", "  attention, at ", "    full ", "    w16+", "Passes of the whole model",
          "  rows, at context", "+-", "Limits of this machine: ", "least / measured\n",
          "least / fitted\n"}) {
        EXPECT_THAT(result.output, testing::HasSubstr(text));
    }
    EXPECT_THAT(result.output,
                testing::HasSubstr("Saved as " + cached("profile-").front().string()));
}

TEST_F(Profile, IsUsedByMatchingRuns) {
    ASSERT_EQ(profile({}).exit_code, 0);
    const fs::path saved = cached("profile-").front();
    const auto run = [&](const Words& flags) {
        ProcessRequest request;
        request.arguments = on_tiny_model("run") + Words{"-p", "a", "-n", "2"} + flags;
        request.environment = {{"KNAP_CACHE_DIR", cache_.string()}};
        return run_knap(request);
    };
    EXPECT_THAT(run({}).error, testing::Not(testing::HasSubstr("warning")));
    EXPECT_THAT(run({"--profile", saved.string(), "-ctk", "f32"}).error,
                testing::HasSubstr("its cache_type_k differs: expected 'f32', found 'f16'"));
    write_text("garbage", "");
    fs::copy_file(temporary_folder() / "garbage", saved, fs::copy_options::overwrite_existing);
    EXPECT_THAT(run({}).error, testing::HasSubstr("knap: warning: profile " + saved.string()));
    EXPECT_THAT(run({"--profile", "none"}).error, testing::Not(testing::HasSubstr("warning")));
    EXPECT_EQ(run({}).exit_code, 0);
    expect_error(run({"--profile", "/no/such/file"}), 1, "found no file /no/such/file");
}

// The work of a pass of one row is that of its parts, but for the row of the embedding.
void expect_parts_to_add_up(const json& limits, int n_layers) {
    const auto is_alone = [](const json& pass) { return pass["n_rows"] == 1; };
    const auto pass = std::ranges::find_if(limits["passes"], is_alone);
    ASSERT_NE(pass, limits["passes"].end());
    std::int64_t n_multiply_adds = 0;
    std::int64_t bytes = 0;
    for (const json& part : limits["parts"]) {
        const int n_times = part["part"] == "head" ? 1 : n_layers;
        if (part["n_context"].is_null() || part["n_context"] == (*pass)["n_context"]) {
            n_multiply_adds += n_times * part["multiply_adds"].get<std::int64_t>();
            bytes += n_times * part["bytes"].get<std::int64_t>();
        }
    }
    EXPECT_EQ(n_multiply_adds, (*pass)["multiply_adds"]);
    EXPECT_LT(bytes, (*pass)["bytes"]);
    EXPECT_GT(bytes, 0.9 * (*pass)["bytes"].get<double>());
}

TEST_F(Profile, JsonHasEveryPromisedField) {
    const fs::path path = folder_ / "out.json";
    const auto result = profile({"--json", "-o", path.string()});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(read_text(path), result.output);
    const json object = json::parse(result.output);
    EXPECT_EQ(object["kind"], "knap profile");
    EXPECT_EQ(object["format"], 1);
    EXPECT_EQ(object["fields"]["threads"], "1");
    EXPECT_EQ(object["n_threads"], 1);
    EXPECT_EQ(object["n_ctx"], 256);
    EXPECT_EQ(object["model"], tiny_model().string());
    EXPECT_EQ(object["saved_to"], cached("profile-").front().string());
    EXPECT_EQ(object["plans"], json::array());
    EXPECT_EQ(object["fit"]["n_samples"], object["samples"].size());
    EXPECT_GE(object["fit"]["worst_error"], object["fit"]["median_error"]);
    EXPECT_GT(object["parts"]["fixed_ms"], 0);
    EXPECT_GT(object["parts"]["head_ms"], 0);
    EXPECT_GT(object["limits"]["gb_per_second"], 0);
    EXPECT_GT(object["limits"]["gmac_per_second"], 0);
    for (const char* list : {"passes", "parts"}) {
        ASSERT_FALSE(object["limits"][list].empty()) << list;
        for (const json& entry : object["limits"][list]) {
            for (const char* name : {"bytes", "multiply_adds", "memory_ms", "arithmetic_ms"}) {
                EXPECT_GT(entry[name], 0) << list << ": " << name;
            }
        }
    }
    const json& layer_class = object["parts"]["classes"][0];
    expect_parts_to_add_up(object["limits"], layer_class["n_layers"]);
    EXPECT_EQ(layer_class["first_layer"], 0);
    EXPECT_GT(layer_class["n_layers"], 0);
    EXPECT_GT(layer_class["mlp_ms"], 0);
    EXPECT_EQ(layer_class["attention"][0]["level"], "full");
    EXPECT_GT(layer_class["attention"][0]["ms"], 0);
    for (const json& sample : object["samples"]) {
        EXPECT_GT(sample["ms"], 0);
        EXPECT_GT(sample["fitted_ms"], 0);
        EXPECT_GE(sample["spread_ms"], 0);
        EXPECT_LE(sample["n_context"], 256);
    }
}

// The number of samples in the saved profile at contexts above 128 tokens.
std::ptrdiff_t n_long_samples(const fs::path& saved) {
    const json profile = json::parse(read_text(saved));
    return std::ranges::count_if(profile["samples"],
                                 [](const json& sample) { return sample["n_context"] > 128; });
}

// Marks a saved profile as one of a busy machine, so that any later one replaces it.
void mark_as_busy(json& profile) {
    for (json& sample : profile["samples"]) {
        sample["was_busy"] = true;
    }
}

TEST_F(Profile, AtAShorterContextKeepsSavedTimesAtLongerOnes) {
    ASSERT_EQ(profile({}).exit_code, 0);
    const fs::path saved = cached("profile-").front();
    const auto n_long = n_long_samples(saved);
    EXPECT_GT(n_long, 0);
    json busy = json::parse(read_text(saved));
    mark_as_busy(busy);
    std::ofstream(saved) << busy;
    const auto shorter = profile({"-c", "128"});
    EXPECT_EQ(shorter.exit_code, 0);
    if (!shorter.error.empty()) {  // the machine was busy during one of the two
        EXPECT_THAT(shorter.error, testing::HasSubstr("above 128 are dropped"));
        EXPECT_EQ(n_long_samples(saved), 0);
        return;
    }
    EXPECT_THAT(shorter.output,
                testing::HasSubstr("with the times at contexts above 128 from an earlier profile"));
    EXPECT_EQ(n_long_samples(saved), n_long);
    EXPECT_THAT(profile({}).output, testing::Not(testing::HasSubstr("from an earlier profile")));
}

TEST_F(Profile, DropsSavedTimesThatDisagreeWithNewOnes) {
    ASSERT_EQ(profile({}).exit_code, 0);
    const fs::path saved = cached("profile-").front();
    json slow = json::parse(read_text(saved));
    for (json& sample : slow["samples"]) {
        sample["ms"] = 100 * sample["ms"].get<double>();
    }
    mark_as_busy(slow);
    std::ofstream(saved) << slow;
    const auto shorter = profile({"-c", "128"});
    EXPECT_EQ(shorter.exit_code, 0);
    EXPECT_EQ(
        shorter.error,
        "knap: warning: the saved times at contexts above 128 are dropped: at shorter contexts "
        "they disagree with the new ones\n");
    EXPECT_EQ(n_long_samples(saved), 0);
}

TEST_F(Profile, JsonOutputCanBeUsedAsAProfile) {
    const fs::path path = folder_ / "out.json";
    ASSERT_EQ(profile({"-o", path.string()}).exit_code, 0);
    const auto result = run_tiny({"-p", "a", "-n", "2", "--profile", path.string()});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, testing::Not(testing::HasSubstr("warning")));
}

// The curve with that title as drawn by gnuplot: its name in the key, then its elements.
std::string curve_in(const std::string& svg, const std::string& title) {
    const auto begin = svg.find("<text>" + title + "</text>");
    EXPECT_NE(begin, std::string::npos) << title;
    const auto end = svg.find("id=\"gnuplot_plot_", begin);
    return begin == std::string::npos ? "" : svg.substr(begin, end - begin);
}

TEST_F(Profile, SvgShowsFitsMeasurementsAndResiduals) {
    const fs::path path = folder_ / "out.svg";
    const auto result = profile({"-o", path.string()});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, testing::HasSubstr("Parts of a pass"))
        << "the table is printed as well";
    const std::string svg = read_text(path);
    EXPECT_THAT(svg, testing::HasSubstr("</svg>"));
    for (const std::string label : {"t_attn(n)", "t_verify(k, n)", "residuals of the fit", "fixed",
                                    "t_head", "t_mlp", "w16+64, measured"}) {
        EXPECT_THAT(svg, testing::HasSubstr(label));
    }
    // Lines have segments, points use a symbol; the key has one of each.
    EXPECT_GT(count(curve_in(svg, "full"), " L"), 20u) << "t_attn over contexts";
    EXPECT_GT(count(curve_in(svg, "n = 128"), " L"), 10u) << "t_verify over 1 to 16 rows";
    for (const char* title : {"full, measured", "n = 128, measured", "one row", "several rows"}) {
        EXPECT_GT(count(curve_in(svg, title), "<use "), 4u) << title;
    }
    EXPECT_GT(count(curve_in(svg, "fitted"), "<polygon"), 3u) << "fixed, head and MLP";
}

TEST_F(Profile, PngIsAPicture) {
    const fs::path path = folder_ / "out.png";
    const auto result = profile({"-o", path.string()});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const std::string png = read_text(path);
    EXPECT_TRUE(png.starts_with("\x89PNG\r\n\x1a\n"));
    EXPECT_GT(png.size(), 10000u);
    EXPECT_THAT(png, testing::HasSubstr("IEND"));
}

TEST_F(Profile, MissingGnuplotIsReportedBeforeMeasuring) {
    ProcessRequest without = request({"-o", (folder_ / "out.svg").string()});
    without.environment.push_back({"PATH", folder_.string()});
    expect_error(run_knap(without), 1, "to draw pictures, install the package gnuplot-nox");
    EXPECT_TRUE(cached("profile-").empty());
}

TEST_F(Profile, GnuplotErrorIsReportedInOneLine) {
    const fs::path path = folder_ / "gnuplot";
    std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n"
                           "printf 'gnuplot> plot\\n     ^\\nline 3: no such thing\\n\\n' >&2\n"
                           "exit 1\n";
    fs::permissions(path, fs::perms::owner_all);
    ProcessRequest failing = request({"-o", (folder_ / "out.svg").string()});
    failing.environment.push_back({"PATH", folder_.string()});
    const auto result = run_knap(failing);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.error,
              "knap: error: gnuplot: cannot draw the picture: line 3: no such thing\n");
    EXPECT_EQ(cached("profile-").size(), 1u) << "the profile is saved";
    EXPECT_FALSE(fs::exists(folder_ / "out.svg"));
}

TEST_F(Profile, UnwritableCacheFolderIsAWarning) {
    ProcessRequest elsewhere = request({});
    elsewhere.environment = {{"KNAP_CACHE_DIR", (tiny_model() / "below").string()}};
    const auto result = run_knap(elsewhere);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, testing::HasSubstr("knap: warning: the profile is not saved: " +
                                                 tiny_model().string()));
    EXPECT_THAT(result.output, testing::HasSubstr("Parts of a pass"));
    EXPECT_THAT(result.output, testing::Not(testing::HasSubstr("Saved as")));
}

TEST_F(Profile, MissingCacheFolderIsAWarning) {
    ProcessRequest nowhere = request({});
    nowhere.environment = {
        {"KNAP_CACHE_DIR", ""}, {"KNAP_CACHE", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}};
    const auto result = run_knap(nowhere);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, testing::HasSubstr("no cache folder is known"));
}

TEST_F(Profile, OutputInAMissingFolderIsReportedBeforeMeasuring) {
    const auto result = profile({"-o", (folder_ / "none" / "out.json").string()});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error, testing::HasSubstr("does not exist"));
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(cached("profile-").size(), 0u);
}

std::string long_text() {
    std::string text;
    for (int i = 0; i < 200; ++i) {
        text += "The " + std::to_string(i) + "th stone was knapped. ";
    }
    return text;
}

TEST_F(Profile, PlansAreFoundAndSavedForTheModel) {
    const fs::path text = write_text("long.txt", long_text());
    const auto result = profile({"--plans", "-f", text.string(), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json object = json::parse(result.output);
    ASSERT_EQ(cached("plans-").size(), 1u);
    const json saved = json::parse(read_text(cached("plans-").front()));
    EXPECT_EQ(saved["kind"], "knap plans");
    ASSERT_EQ(saved["plans"].size(), object["plans"].size());
    for (std::size_t i = 0; i < saved["plans"].size(); ++i) {
        EXPECT_EQ(saved["plans"][i]["plan"], object["plans"][i]["plan"]);
        EXPECT_EQ(saved["plans"][i]["n_context"], 256);
        EXPECT_GT(object["plans"][i]["draft_step_ms"], 0);
    }
    const auto run = run_tiny({"-p", "a", "-n", "2"});
    EXPECT_THAT(run.error, testing::Not(testing::HasSubstr("warning")));
}

TEST_F(Profile, PlansNeedEnoughText) {
    const fs::path text = write_text("short.txt", "a few words");
    expect_error(profile({"--plans", "-f", text.string()}), 1,
                 "--plans: expected a text and a context (-c) of at least 128 tokens, found ");
    expect_error(profile({"--plans", "-f", "/no/such/text"}), 1,
                 "text /no/such/text: cannot be opened");
}

TEST_F(Profile, CtrlCKeepsTheSavedProfile) {
    ASSERT_EQ(profile({}).exit_code, 0);
    const std::string before = read_text(cached("profile-").front());
    ProcessRequest long_one = request({"--seconds", "600"});
    long_one.is_on_terminal = true;  // a progress bar shows that measuring has begun
    long_one.signals = {{SIGINT, "measure ["}};
    const auto result = run_knap(long_one);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output, testing::HasSubstr("knap: interrupted, nothing new is saved"));
    EXPECT_EQ(read_text(cached("profile-").front()), before);
    EXPECT_EQ(cached("").size(), 1u) << "no half-written file";
}

TEST_F(Profile, CtrlCDuringTheSearchKeepsTheProfile) {
    const fs::path text = write_text("long.txt", long_text());
    ProcessRequest searching;
    searching.arguments = {"profile", "-m",        tiny_model("small-llama", "Q8_0").string(),
                           "-t",      "1",         "-c",
                           "512",     "--seconds", "0.2",
                           "--plans", "-f",        text.string()};
    searching.environment = {{"KNAP_CACHE_DIR", cache_.string()}};
    searching.is_on_terminal = true;
    searching.signals = {{SIGINT, "plans ["}};
    const auto result = run_knap(searching);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output, testing::HasSubstr("knap: interrupted, the profile and the plans"));
    EXPECT_EQ(cached("profile-").size(), 1u);
    EXPECT_TRUE(cached("plans-").empty());
}

}  // namespace
}  // namespace knap::cli_profile_test
