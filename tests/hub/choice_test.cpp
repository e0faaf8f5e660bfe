#include "hub/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

namespace knap::choice_test {
namespace {

std::vector<HubFile> files_named(const std::vector<std::string>& paths) {
    std::vector<HubFile> files;
    for (const std::string& path : paths) {
        files.push_back({.path = path, .n_bytes = 8, .digest = {}});
    }
    return files;
}

std::vector<std::string> choose(const std::vector<std::string>& paths,
                                const std::string& reference) {
    std::vector<std::string> chosen;
    for (const HubFile& file :
         choose_files(files_named(paths), parse_hub_reference("user/repo" + reference))) {
        chosen.push_back(file.path);
    }
    return chosen;
}

std::string error_of(const std::vector<std::string>& paths, const std::string& reference) {
    try {
        choose(paths, reference);
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HubChoice, WithoutAQuantPrefersQ4KMThenQ8ThenTheFirst) {
    EXPECT_THAT(choose({"a-F16.gguf", "a-Q8_0.gguf", "a-q4_k_m.gguf"}, ""),
                ElementsAre("a-q4_k_m.gguf"));
    EXPECT_THAT(choose({"a-F16.gguf", "a-Q8_0.gguf"}, ""), ElementsAre("a-Q8_0.gguf"));
    EXPECT_THAT(choose({"a-F16.gguf", "a-IQ1.gguf"}, ""), ElementsAre("a-F16.gguf"));
}

TEST(HubChoice, AQuantIsAWholeWordOfThePath) {
    const std::vector<std::string> paths{"a-BF16.gguf", "a-IQ4_XS.gguf", "UD-Q4_K_XL/a.gguf",
                                         "a.F16.gguf"};
    EXPECT_THAT(choose(paths, ":f16"), ElementsAre("a.F16.gguf"));
    EXPECT_THAT(choose(paths, ":Q4_K_XL"), ElementsAre("UD-Q4_K_XL/a.gguf"));
    EXPECT_THAT(choose(paths, ":UD-Q4_K_XL"), ElementsAre("UD-Q4_K_XL/a.gguf"));
    EXPECT_THAT(error_of(paths, ":Q4_X"), HasSubstr("for :Q4_X, found a-BF16.gguf, "));
}

TEST(HubChoice, ANameOfZeroPartsIsThatOfOneFile) {
    EXPECT_THAT(choose({"a-00001-of-00000.gguf"}, ""), ElementsAre("a-00001-of-00000.gguf"));
}

TEST(HubChoice, PassesOverWhatIsNoModel) {
    EXPECT_THAT(choose({"mmproj-Q4_K_M.gguf", "imatrix-Q4_K_M.gguf", "mtp-Q4_K_M.gguf",
                        "mmproj/a-Q4_K_M.gguf"},
                       ""),
                ElementsAre("mmproj/a-Q4_K_M.gguf"));
    EXPECT_THAT(choose({"mmproj-F16.gguf"}, ":mmproj-F16.gguf"), ElementsAre("mmproj-F16.gguf"));
}

TEST(HubChoice, TakesAllPartsInOrder) {
    const std::vector<std::string> paths{"q/a-Q8_0-00002-of-00002.gguf",
                                         "a-Q8_0-00001-of-00002.gguf",
                                         "q/a-Q8_0-00001-of-00002.gguf"};
    const auto both = ElementsAre("q/a-Q8_0-00001-of-00002.gguf", "q/a-Q8_0-00002-of-00002.gguf");
    EXPECT_THAT(choose(paths, ":q/a-Q8_0-00001-of-00002.gguf"), both);
    EXPECT_THAT(choose(paths, ":q/a-Q8_0-00002-of-00002.gguf"), both);
    EXPECT_THAT(error_of(paths, ""), HasSubstr("found no a-Q8_0-00002-of-00002.gguf"));
}

TEST(HubChoice, ListsAFewOfManyFiles) {
    const std::vector<std::string> paths(20, "a-F16.gguf");
    EXPECT_THAT(error_of(paths, ":Q9"), HasSubstr("a-F16.gguf and 8 more"));
    EXPECT_THAT(error_of({}, ""), HasSubstr("expected a GGUF file, found none"));
}

TEST(HubReference, NamesAQuantOrAFile) {
    const HubReference quant = parse_hub_reference("a-b.c/d_e:Q4_K_M");
    EXPECT_EQ(quant.repository, "a-b.c/d_e");
    EXPECT_EQ(quant.quant, "Q4_K_M");
    EXPECT_EQ(quant.file, "");
    const HubReference file = parse_hub_reference("a/b:c/d.gguf");
    EXPECT_EQ(file.quant, "");
    EXPECT_EQ(file.file, "c/d.gguf");
}

TEST(HubReference, RepositoriesAreSafeNamesOfFolders) {
    for (const char* text : {"", "a", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/.b", "a/b.",
                             "a/b-", "a/b--c", "a\\b/c", "a/b\n", "a/b:", "a/b c", ":Q4_K_M"}) {
        EXPECT_THROW(parse_hub_reference(text), Error) << text;
    }
}

TEST(HubListing, PathsStayInTheirFolder) {
    EXPECT_TRUE(is_safe_path("a/b c/d.gguf"));
    for (const char* path : {"", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.b", "a\\b", "C:a",
                             "a\nb", "1/2/3/4/5/6/7/8/9"}) {
        EXPECT_FALSE(is_safe_path(path)) << path;
    }
    EXPECT_FALSE(is_safe_path(std::string(181, 'a')));
}

}  // namespace
}  // namespace knap::choice_test
