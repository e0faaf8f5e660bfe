#include "decode/option_table.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "base/error.h"

namespace knap::option_table_test {
namespace {

struct Bag {
    int apples = 1;
    float weight = 0.5f;
    std::string order{};  // in which options were set
};

constexpr std::array kTable = {
    StrategyOption<Bag>{{"all", "few|many", "everything at once"},
                        [](Bag& bag, std::string_view value) {
                            bag.order += "all ";
                            bag.apples = value == "many" ? 9 : 2;
                            return value == "few" || value == "many";
                        }},
    StrategyOption<Bag>{{"apples", "0..9", "how many"},
                        [](Bag& bag, std::string_view value) {
                            bag.order += "apples ";
                            return read_integer(value, 0, 9, bag.apples);
                        }},
    StrategyOption<Bag>{{"weight", "-1..1", "how heavy"},
                        [](Bag& bag, std::string_view value) {
                            bag.order += "weight ";
                            return read_number(value, -1, 1, bag.weight);
                        }},
};

Bag parse(std::string_view text) {
    Bag bag;
    apply_settings(parse_settings(text), kTable, bag);
    return bag;
}

std::string complaint(std::string_view text) {
    try {
        parse(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(OptionTable, UnnamedOptionsKeepTheirDefaults) {
    EXPECT_EQ(parse("").order, "");
    const Bag bag = parse("weight=-0.25");
    EXPECT_EQ(bag.apples, 1);
    EXPECT_EQ(bag.weight, -0.25f);
    EXPECT_EQ(bag.order, "weight ");
}

TEST(OptionTable, OptionsAreSetInTableOrder) {
    for (const char* text : {"all=many,weight=1,apples=3", "apples=3,weight=1,all=many"}) {
        const Bag bag = parse(text);
        EXPECT_EQ(bag.order, "all apples weight ") << text;
        EXPECT_EQ(bag.apples, 3) << "a key that is given wins over the one for all";
        EXPECT_EQ(bag.weight, 1.0f);
    }
    EXPECT_EQ(parse("all=many").apples, 9);
}

TEST(OptionTable, ErrorsStateWhatIsExpected) {
    EXPECT_EQ(complaint("apples=12"), "`.settings`: expected apples=0..9, found '12'");
    EXPECT_EQ(complaint("all=some"), "`.settings`: expected all=few|many, found 'some'");
    EXPECT_THAT(complaint("apples=\n"), ::testing::EndsWith("found '?'"));
}

TEST(OptionTable, JoinedTablesKeepTheirOrder) {
    constexpr auto kJoined = join_tables(kTable, std::array{kTable[1]});
    const auto infos = infos_of(kJoined);
    ASSERT_EQ(infos.size(), 4u);
    EXPECT_EQ(infos[0].key, "all");
    EXPECT_EQ(infos[3].key, "apples");
}

TEST(OptionTable, NumbersAreReadWholeAndWithinTheirRange) {
    for (const char* text : {"apples=", "apples= 1", "apples=1 ", "apples=+1", "apples=1.5",
                             "apples=-1", "apples=10", "apples=99999999999", "apples=0x1"}) {
        EXPECT_THAT(complaint(text), ::testing::StartsWith("`.settings`: expected apples="))
            << text;
    }
    for (const char* text : {"weight=nan", "weight=inf", "weight=1.01", "weight=-1.01",
                             "weight=", "weight=0.5x", "weight=1e99", "weight=0=1"}) {
        EXPECT_THAT(complaint(text), ::testing::StartsWith("`.settings`: expected weight="))
            << text;
    }
    EXPECT_EQ(parse("apples=0").apples, 0);
    EXPECT_EQ(parse("apples=9").apples, 9);
    EXPECT_EQ(parse("weight=1").weight, 1.0f);
    EXPECT_EQ(parse("weight=-1").weight, -1.0f);
}

TEST(OptionTable, RefusedNumberChangesNothing) {
    int value = 4;
    EXPECT_FALSE(read_integer("12", 0, 9, value));
    EXPECT_EQ(value, 4);
}

}  // namespace
}  // namespace knap::option_table_test
