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

TEST(ClientList, QuietBeginsAfterTheLatestOfTheOthers) {
    const auto quiet = milliseconds(20);
    ClientList list;
    ClientState own;
    ClientState other{.latest_time = kStart};
    ClientState third{.latest_time = kStart + milliseconds(5)};
    list.add(own);
    own.ask(PassKind::search);
    EXPECT_LE(list.quiet_time(quiet), kStart);
    list.add(other);  // has come to ask for something
    EXPECT_EQ(list.quiet_time(quiet), kStart + quiet);
    list.add(third);
    EXPECT_EQ(list.quiet_time(quiet), kStart + milliseconds(25));
    third.ask(PassKind::search);  // does not keep others from searching
    EXPECT_EQ(list.quiet_time(quiet), kStart + quiet);
    other.ask(PassKind::decode);
    other.answer(kStart + milliseconds(70));
    EXPECT_EQ(list.quiet_time(quiet), kStart + milliseconds(90));
}

}  // namespace
}  // namespace knap::client_list_test
