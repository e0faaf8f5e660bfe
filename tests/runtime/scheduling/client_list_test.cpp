#include "runtime/scheduling/client_list.h"

#include <gtest/gtest.h>

namespace knap::client_list_test {
namespace {

using std::chrono::milliseconds;

const SteadyTime kStart = SteadyTime{} + std::chrono::hours(1);

TEST(ClientList, FindsTheLatestClientOfAThread) {
    const auto here = std::this_thread::get_id();
    ClientList list;
    EXPECT_EQ(list.of_thread(here), nullptr);
    ClientState elsewhere;  // no thread
    ClientState outer{.thread = here};
    ClientState inner{.thread = here};
    list.add(elsewhere);
    EXPECT_EQ(list.of_thread(here), nullptr);
    list.add(outer);
    list.add(inner);
    EXPECT_EQ(list.of_thread(here), &inner);
    list.remove(inner);
    EXPECT_EQ(list.of_thread(here), &outer);
    EXPECT_EQ(list.count_besides(&outer), 1);
    EXPECT_EQ(list.count_besides(nullptr), 2);
}

TEST(ClientList, AClientIsDueFromAnAnswerToItsNextRequest) {
    ClientList list;
    ClientState client;
    list.add(client);
    EXPECT_FALSE(list.is_any_due());  // nobody knows when its first request comes
    client.ask(PassKind::decode);
    EXPECT_FALSE(list.is_any_due());
    client.answer(kStart);
    EXPECT_TRUE(list.is_any_due());
    client.ask(std::nullopt);
    EXPECT_FALSE(list.is_any_due());
    client.answer(kStart);
    EXPECT_TRUE(list.is_any_due());
    list.wait_for_none();
    EXPECT_FALSE(list.is_any_due());
    client.ask(PassKind::prompt);
    client.answer(kStart);
    EXPECT_TRUE(list.is_any_due());
    list.remove(client);
    EXPECT_FALSE(list.is_any_due());
}

TEST(ClientList, NobodyWaitsForAClientThatSearches) {
    ClientList list;
    ClientState client;
    list.add(client);
    client.ask(PassKind::search);
    client.answer(kStart);
    EXPECT_FALSE(list.is_any_due());
}

TEST(ClientList, AClientDecodesForAWhileAfterItsLatestDecodingPass) {
    ClientList list;
    ClientState client;
    list.add(client);
    EXPECT_FALSE(list.is_any_decoding(kStart));
    client.ask(PassKind::decode);
    client.answer(kStart + milliseconds(300));
    EXPECT_TRUE(list.is_any_decoding(kStart + milliseconds(1200)));
    EXPECT_FALSE(list.is_any_decoding(kStart + milliseconds(1300)));
    client.ask(std::nullopt);  // a chain of drafts
    client.answer(kStart + milliseconds(2000));
    EXPECT_TRUE(list.is_any_decoding(kStart + milliseconds(2500)));
    client.ask(PassKind::prompt);
    client.answer(kStart + milliseconds(2600));
    EXPECT_FALSE(list.is_any_decoding(kStart + milliseconds(2600)));
}

TEST(ClientList, OthersAreQuietWhenTheyCameOrWereAnsweredBefore) {
    ClientList list;
    ClientState own{.latest_time = kStart + milliseconds(9)};
    ClientState other{.latest_time = kStart};
    list.add(own);
    EXPECT_TRUE(list.are_quiet_besides(&own, kStart));
    EXPECT_FALSE(list.are_quiet_besides(nullptr, kStart));
    list.add(other);
    EXPECT_FALSE(list.are_quiet_besides(&own, kStart));
    EXPECT_TRUE(list.are_quiet_besides(&own, kStart + milliseconds(1)));
    other.ask(PassKind::decode);
    other.answer(kStart + milliseconds(5));
    EXPECT_FALSE(list.are_quiet_besides(&own, kStart + milliseconds(5)));
}

}  // namespace
}  // namespace knap::client_list_test
