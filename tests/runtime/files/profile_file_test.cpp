#include "runtime/files/profile_file.h"

#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "knap/knap.h"

#include "base/log.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "support/damaged_file.h"
#include "support/environment_variable.h"
#include "support/tiny_model.h"

namespace knap::test::profile_file_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int kLayers = 4;

MachineFingerprint some_machine() {
    return {{{"model", "0123456789abcdef"}, {"device", "a \"fast\" one"}, {"threads", "2"}}};
}

CostProfile blank() {
    return {.layer_classes = {0, 1, 1, 0}, .bytes = {.head = 77}};
}

CostProfile some_profile() {
    CostProfile profile = blank();
    ModulePlan mixed = uniform_window_plan(kLayers, {.sinks = 16, .recent = 64});
    mixed.set(2, Module::mlp, Level::skip);
    profile.samples = {
        {.plan = ModulePlan(kLayers),
         .n_context = 128,
         .ms = 1.0 / 3,
         .spread_ms = 0.01,
         .n_measured = 7},
        {.plan = mixed, .n_context = 4096, .n_rows = 3, .has_head = false, .ms = 2.5e-3},
    };
    return profile;
}

void expect_same(const CostProfile& found, const CostProfile& expected) {
    EXPECT_EQ(found.layer_classes, expected.layer_classes);
    ASSERT_EQ(found.samples.size(), expected.samples.size());
    for (std::size_t i = 0; i < expected.samples.size(); ++i) {
        const CostSample& a = found.samples[i];
        const CostSample& b = expected.samples[i];
        EXPECT_EQ(a.plan, b.plan);
        EXPECT_EQ(a.n_context, b.n_context);
        EXPECT_EQ(a.n_rows, b.n_rows);
        EXPECT_EQ(a.has_head, b.has_head);
        EXPECT_EQ(a.ms, b.ms);
        EXPECT_EQ(a.spread_ms, b.spread_ms);
        EXPECT_EQ(a.n_measured, b.n_measured);
    }
}

class ProfileFile : public ::testing::Test {
  protected:
    ProfileFile() { save_profile(path_, some_profile(), some_machine()); }
    ~ProfileFile() override { fs::remove_all(path_.parent_path()); }

    // Loads the file and expects exactly one line of warning, which it returns.
    std::string warning_of_load() {
        set_log(LogLevel::warning, {});  // forgets the warnings that were given
        ::testing::internal::CaptureStderr();
        const auto loaded = load_profile(path_, some_machine(), blank());
        std::string text = ::testing::internal::GetCapturedStderr();
        EXPECT_FALSE(loaded.has_value());
        EXPECT_THAT(text, HasSubstr("knap: warning: profile " + path_.string() + " is ignored: "));
        EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
        return text;
    }

    // The same after a change to the file.
    std::string warning_after(const std::function<void(json&)>& change) {
        json file = json::parse(std::ifstream(path_));
        change(file);
        std::ofstream(path_) << file;
        return warning_of_load();
    }

    fs::path path_ = temporary_folder() / "profiles" / "below" / "profile.json";
};

TEST_F(ProfileFile, LoadsWhatWasSavedWithoutAWarning) {
    ::testing::internal::CaptureStderr();
    const auto loaded = load_profile(path_, some_machine(), blank());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    ASSERT_TRUE(loaded.has_value());
    expect_same(*loaded, some_profile());
    EXPECT_EQ(loaded->bytes.head, 77) << "what follows from the model is the caller's";
}

TEST_F(ProfileFile, IsReplacedAsAWhole) {
    CostProfile other = some_profile();
    other.samples.pop_back();
    save_profile(path_, other, some_machine());
    expect_same(*load_profile(path_, some_machine(), blank()), other);
    EXPECT_FALSE(fs::exists(path_.string() + ".partial"));
}

TEST_F(ProfileFile, MissingFileGivesNoWarning) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(load_profile(path_.parent_path() / "other.json", some_machine(), blank()),
              std::nullopt);
    EXPECT_EQ(load_profile("/no/such/folder/file", some_machine(), blank()), std::nullopt);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(ProfileFile, WarningNamesTheFieldThatDiffers) {
    EXPECT_THAT(warning_after([](json& file) { file["fields"]["threads"] = "4"; }),
                HasSubstr("its threads differs: expected '2', found '4'"));
    EXPECT_THAT(warning_after([](json& file) { file["fields"].erase("device"); }),
                HasSubstr("expected a text `device`, found none"));
    EXPECT_THAT(warning_after([](json& file) { file.erase("fields"); }),
                HasSubstr("expected an object `fields`, found none"));
    EXPECT_THAT(warning_after([](json& file) { file["format"] = 2; }),
                HasSubstr("expected format 1, found 2"));
    EXPECT_THAT(warning_after([](json& file) { file["kind"] = "some\nother"; }),
                HasSubstr("expected 'knap profile', found 'some?other'"));
}

TEST_F(ProfileFile, FileOfAnotherModelIsRefused) {
    EXPECT_THAT(warning_after([](json& file) {
                    file["layer_classes"] = {0, 1, 1};
                }),
                HasSubstr("expected 4 layers, found 3"));
    EXPECT_THAT(warning_after([](json& file) {
                    file["layer_classes"] = {0, 0, 0, 0};
                }),
                HasSubstr("expected the layer classes of this model, found others"));
}

TEST_F(ProfileFile, ImplausibleSamplesAreRefused) {
    const auto warning_with = [this](const char* name, const json& value) {
        save_profile(path_, some_profile(), some_machine());
        return warning_after([&](json& file) { file["samples"][1][name] = value; });
    };
    EXPECT_THAT(warning_with("ms", 0), HasSubstr("expected the time of a pass, found 0 ms"));
    EXPECT_THAT(warning_with("ms", -1), HasSubstr("expected `ms` from 0"));
    EXPECT_THAT(warning_with("ms", 1e200), HasSubstr("expected the time of a pass"));
    EXPECT_THAT(warning_with("ms", nullptr), HasSubstr("expected a number `ms`, found null"));
    EXPECT_THAT(warning_with("ms", "2"), HasSubstr("expected a number `ms`, found string"));
    EXPECT_THAT(warning_with("spread_ms", -0.5), HasSubstr("`spread_ms`"));
    EXPECT_THAT(warning_with("n_context", -1), HasSubstr("`n_context`"));
    EXPECT_THAT(warning_with("n_context", 1.5), HasSubstr("a whole number `n_context`"));
    EXPECT_THAT(warning_with("n_context", std::uint64_t{1} << 63), HasSubstr("`n_context`"));
    EXPECT_THAT(warning_with("n_rows", 0), HasSubstr("`n_rows`"));
    EXPECT_THAT(warning_with("n_rows", 1 << 30), HasSubstr("`n_rows`"));
    EXPECT_THAT(warning_with("n_measured", 0), HasSubstr("`n_measured`"));
    EXPECT_THAT(warning_with("has_head", 1), HasSubstr("expected true or false `has_head`"));
    EXPECT_THAT(warning_with("plan", "a99=skip"), HasSubstr("`plan`"));
    EXPECT_THAT(warning_with("plan", 5), HasSubstr("expected a text `plan`, found number"));
}

TEST_F(ProfileFile, NeedsAPassOfTheWholeModel) {
    EXPECT_THAT(warning_after([](json& file) { file["samples"].erase(0); }),
                HasSubstr("expected a sample of the whole model over one row, found none"));
    EXPECT_THAT(warning_after([](json& file) { file["samples"] = json::object(); }),
                HasSubstr("expected a list `samples`, found object"));
    EXPECT_THAT(warning_after([](json& file) {
                    file["samples"] = {1, "a"};
                }),
                HasSubstr("expected a text `plan`, found none"));
}

TEST_F(ProfileFile, FilesThatAreNotProfilesAreRefused) {
    std::ofstream(path_) << "";
    EXPECT_THAT(warning_of_load(), HasSubstr("expected a JSON object, found damaged text"));
    std::ofstream(path_) << "[]";
    EXPECT_THAT(warning_of_load(), HasSubstr("expected a JSON object, found array"));
    std::ofstream(path_) << std::string(60, '[');
    EXPECT_THAT(warning_of_load(), HasSubstr("damaged text"));
    std::ofstream(path_) << std::string(100000, '[');
    EXPECT_THAT(warning_of_load(), HasSubstr("expected at most 64 levels of JSON, found more"));
    fs::resize_file(path_, (16 << 20) + 1);
    EXPECT_THAT(warning_of_load(), HasSubstr("expected at most 16777216 bytes, found 16777217"));
    fs::remove(path_);
    fs::create_directory(path_);
    EXPECT_THAT(warning_of_load(), HasSubstr("expected a file, found something else"));
}

TEST_F(ProfileFile, DamageNeverGivesAnUnusableProfile) {
    int n_refused = 0;
    ::testing::internal::CaptureStderr();
    for_each_damage(path_, [&] {
        set_log(LogLevel::warning, {});  // forgets the warnings that were given
        const auto loaded = load_profile(path_, some_machine(), blank());
        n_refused += loaded ? 0 : 1;
        if (loaded) {
            EXPECT_TRUE(can_fit(*loaded));
            EXPECT_EQ(loaded->layer_classes, blank().layer_classes);
        }
    });
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(warnings, '\n'), n_refused) << "one line each";
    EXPECT_GT(n_refused, 400);
    expect_same(*load_profile(path_, some_machine(), blank()), some_profile());
}

TEST_F(ProfileFile, UnwritableFolderIsAnErrorThatNamesIt) {
    const fs::path file = temporary_folder() / "a_file";
    std::ofstream(file) << "x";
    try {
        save_profile(file / "folder" / "profile.json", some_profile(), some_machine());
        FAIL() << "expected an error";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(file.string()));
    }
}

TEST(MachineFingerprint, HashDependsOnEveryNameAndValueAndTheirBoundaries) {
    const MachineFingerprint a{{{"ab", "c"}, {"d", "e"}}};
    EXPECT_EQ(a.hash().size(), 16u);
    EXPECT_EQ(a.hash(), (MachineFingerprint{{{"ab", "c"}, {"d", "e"}}}.hash()));
    for (const MachineFingerprint& other :
         {MachineFingerprint{{{"a", "bc"}, {"d", "e"}}}, MachineFingerprint{{{"ab", "c"}}},
          MachineFingerprint{{{"d", "e"}, {"ab", "c"}}},
          MachineFingerprint{{{"ab", "c"}, {"d", "f"}}}}) {
        EXPECT_NE(a.hash(), other.hash());
    }
}

RuntimeConfig tiny_config() {
    return {.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 256, .n_threads = 1};
}

std::string hash_of(const RuntimeConfig& config) {
    const Engine engine(config);
    return machine_fingerprint(impl_of(engine)).hash();
}

TEST(MachineFingerprint, ChangesWithEverythingThatChangesTimes) {
    const std::string usual = hash_of(tiny_config());
    EXPECT_EQ(hash_of(tiny_config()), usual);
    RuntimeConfig config = tiny_config();
    config.n_ctx = 128;
    EXPECT_EQ(hash_of(config), usual) << "times at a context do not depend on the longest one";
    const auto expect_other = [&](auto change) {
        RuntimeConfig changed = tiny_config();
        change(changed);
        EXPECT_NE(hash_of(changed), usual);
    };
    expect_other([](RuntimeConfig& c) { c.n_threads = 2; });
    expect_other([](RuntimeConfig& c) { c.cache_type_k = CacheType::f32; });
    expect_other([](RuntimeConfig& c) { c.cache_type_v = CacheType::f32; });
    expect_other([](RuntimeConfig& c) { c.flash_attention = FlashAttention::on; });
    expect_other([](RuntimeConfig& c) { c.kernels = Kernels::ggml; });
    expect_other([](RuntimeConfig& c) { c.model_path = tiny_model("tiny-llama", "Q8_0", 1); });
}

TEST(MachineFingerprint, NamesWhatItDependsOn) {
    const Engine engine(tiny_config());
    std::string names;
    for (const auto& [name, value] : machine_fingerprint(impl_of(engine)).fields) {
        names += name + " ";
        EXPECT_FALSE(value.empty()) << name;
    }
    EXPECT_EQ(names,
              "model device instructions threads cache_type_k cache_type_v attention kernels "
              "repack products ggml knap ");
}

// The costs and plans that a session starts with.
class KnownCosts : public ::testing::Test {
  protected:
    KnownCosts() {
        const Engine engine(tiny_config());
        CostProfile profile = blank_profile(impl_of(engine));
        profile.samples.push_back({.plan = ModulePlan(profile.n_layers()), .ms = 1.5});
        const auto machine = machine_fingerprint(impl_of(engine));
        save_profile(*profile_path(machine), profile, machine);
        const PlansModel model = plans_model(impl_of(engine));
        const SavedPlan plan{
            .n_context = 100, .plan = early_exit_plan(model.n_layers, 1), .agreed = 3, .n_rows = 4};
        save_plans(*plans_path(model), model, std::span(&plan, 1));
    }

    static std::size_t n_samples(const std::string& wish) {
        RuntimeConfig config = tiny_config();
        config.profile = wish;
        const Engine engine(config);
        return known_profile(impl_of(engine)).samples.size();
    }
    static std::size_t n_plans(const std::string& wish) {
        RuntimeConfig config = tiny_config();
        config.profile = wish;
        const Engine engine(config);
        return known_plans(impl_of(engine)).size();
    }

    fs::path folder_ = temporary_folder() / "known";
    EnvironmentVariable variable_{"KNAP_CACHE_DIR", folder_.string()};
};

TEST_F(KnownCosts, ComeFromTheCacheFolderUnlessDisabled) {
    EXPECT_EQ(n_samples("auto"), 1u);
    EXPECT_EQ(n_plans("auto"), 1u);
    EXPECT_EQ(n_samples("none"), 0u);
    EXPECT_EQ(n_plans("none"), 0u);
    fs::remove_all(folder_);
    EXPECT_EQ(n_samples("auto"), 0u);
    EXPECT_EQ(n_plans("auto"), 0u);
}

TEST_F(KnownCosts, ComeFromANamedFile) {
    const Engine engine(tiny_config());
    const fs::path named = temporary_folder() / "named.json";
    fs::rename(*profile_path(machine_fingerprint(impl_of(engine))), named);
    EXPECT_EQ(n_samples("auto"), 0u);
    EXPECT_EQ(n_samples(named.string()), 1u);
}

TEST_F(KnownCosts, NamedFileMustExist) {
    RuntimeConfig config = tiny_config();
    config.profile = "/no/such/profile.json";
    Engine engine(config);
    try {
        Session session(engine);
        FAIL() << "expected an error";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "`.profile`: expected auto, none or a file, found no file "
                     "/no/such/profile.json");
    }
    config.profile = "";
    EXPECT_THROW(Engine{config}, Error);
}

TEST_F(KnownCosts, AreEmptyWithoutACacheFolder) {
    const EnvironmentVariable own("KNAP_CACHE_DIR", "");
    const EnvironmentVariable shared("KNAP_CACHE", "");
    const EnvironmentVariable xdg("XDG_CACHE_HOME", "");
    const EnvironmentVariable home("HOME", "");
    EXPECT_EQ(n_samples("auto"), 0u);
    EXPECT_EQ(n_plans("auto"), 0u);
}

}  // namespace
}  // namespace knap::test::profile_file_test
