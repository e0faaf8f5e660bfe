#include "base/cache_folder.h"

#include <gtest/gtest.h>

#include "support/environment_variable.h"

namespace knap::test::cache_folder_test {
namespace {

// All four variables, each set or empty.
struct Variables {
    Variables(const char* own, const char* shared, const char* xdg, const char* home)
        : own_("KNAP_CACHE_DIR", own),
          shared_("KNAP_CACHE", shared),
          xdg_("XDG_CACHE_HOME", xdg),
          home_("HOME", home) {}

    EnvironmentVariable own_;
    EnvironmentVariable shared_;
    EnvironmentVariable xdg_;
    EnvironmentVariable home_;
};

TEST(CacheFolder, FollowsTheFirstVariableSet) {
    {
        const Variables set("/own", "/shared", "/xdg", "/home/me");
        EXPECT_EQ(cache_folder(), "/own/");
    }
    {
        const Variables set("", "/shared", "/xdg", "/home/me");
        EXPECT_EQ(cache_folder(), "/shared/");
    }
    {
        const Variables set("", "", "/xdg", "/home/me");
        EXPECT_EQ(cache_folder(), "/xdg/knap");
    }
    {
        const Variables set("", "", "", "/home/me");
        EXPECT_EQ(cache_folder(), "/home/me/.cache/knap");
    }
}

TEST(CacheFolder, IsNoneWhenNoVariableIsSet) {
    const Variables set("", "", "", "");
    EXPECT_EQ(cache_folder(), std::nullopt);
    EXPECT_EQ(shared_cache_folder(), std::nullopt);
}

TEST(CacheFolder, SharedFolderIgnoresKnapCacheDir) {
    const Variables set("/own", "", "/xdg", "/home/me");
    EXPECT_EQ(shared_cache_folder(), "/xdg/knap");
}

}  // namespace
}  // namespace knap::test::cache_folder_test
