// The blocking client against the real server, which runs on a thread of its own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include "http/client.hpp"
#include "http/server.hpp"
#include "net/socket.hpp"

namespace zed::http {
namespace {

namespace fs = std::filesystem;

/// Answers `why JOB` with the error of that name, `jobs` with one job, `logs` never.
class ServerThread {
public:
  ServerThread() {
    std::string pattern = (fs::temp_directory_path() / "zed-client-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    start();
  }
  ~ServerThread() {
    stop();
    fs::remove_all(folder);
  }
  void start() {
    loop = std::make_unique<net::Loop>();
    auto opened =
        Server::open(*loop, {path(), std::nullopt, {}},
                     [this](const api::Request& request, const api::Caller&,
                            const Reply& reply) -> OnGone { return handle(request, reply); });
    ASSERT_TRUE(opened) << opened.error().describe();
    server = std::move(*opened);
    thread = std::thread([this] { loop->run(); });
  }
  void stop() {
    if (!thread.joinable()) return;
    loop->stop();
    thread.join();
    held.clear();
    server.reset();
    loop.reset();
  }
  std::string path() const { return (folder / "s").string(); }
  void publish(std::uint64_t number) {
    loop->post([this, number] {
      server->publish({number, {}, "notice", "fleet", std::to_string(number)});
    });
  }

private:
  OnGone handle(const api::Request& request, const Reply& reply) {
    if (const auto* why = std::get_if<api::WhyJob>(&request)) {
      reply(fail(error_code_of(why->job), "because", "try this"));
    } else if (std::holds_alternative<api::ReadJobLog>(request)) {
      held.push_back(reply);
    } else if (std::holds_alternative<api::ListEvents>(request)) {
      reply(api::encode_reply(api::EventsReply{}));
    } else if (std::holds_alternative<api::MakePlan>(request)) {
      api::PlanReply plan;
      plan.diagnostics.push_back(std::get<api::MakePlan>(request).text);
      reply(api::encode_reply(plan));
    } else {
      api::JobsReply jobs;
      jobs.jobs.emplace_back().name = "finetune";
      reply(api::encode_reply(jobs));
    }
    return {};
  }

  fs::path folder;
  std::unique_ptr<net::Loop> loop;
  std::unique_ptr<Server> server;
  std::vector<Reply> held;
  std::thread thread;
};

TEST(Client, CallsTypedOperations) {
  ServerThread server;
  Client client({server.path(), seconds(10), -1});
  for (int i = 0; i < 3; ++i) {
    auto jobs = client.call(api::ListJobs{});
    ASSERT_TRUE(jobs) << jobs.error().describe();
    ASSERT_EQ(jobs->jobs.size(), 1U);
    EXPECT_EQ(jobs->jobs.front().name, "finetune");
  }
}

TEST(Client, GivesTheControllersErrors) {
  ServerThread server;
  Client client({server.path(), seconds(10), -1});
  for (const char* code : {"not_found", "refused", "unplaceable", "stale", "busy", "no_space"}) {
    auto why = client.call(api::WhyJob{code});
    ASSERT_FALSE(why);
    EXPECT_EQ(to_string(why.error().code), code);
    EXPECT_EQ(why.error().message, "because");
    EXPECT_EQ(why.error().hint, "try this");
  }
}

TEST(Client, CarriesLargeTextsBothWays) {
  ServerThread server;
  Client client({server.path(), seconds(20), -1});
  api::MakePlan plan;
  plan.text = std::string(std::size_t{3} << 20, 'x');
  auto reply = client.call(plan);
  ASSERT_TRUE(reply) << reply.error().describe();
  EXPECT_EQ(reply->diagnostics.front().size(), plan.text.size());
}

TEST(Client, SeesTheAnswerToARequestThatIsTooLarge) {
  ServerThread server;
  Client client({server.path(), seconds(10), -1});
  api::MakePlan plan;
  plan.text = std::string(std::size_t{12} << 20, 'x');
  auto reply = client.call(plan);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::invalid) << reply.error().describe();
}

TEST(Client, NobodyThereIsUnavailable) {
  Client client({"/nonexistent/zed.sock", seconds(1), -1});
  auto reply = client.call(api::GetStatus{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::unavailable);
}

TEST(Client, TimesOutAndKeepsTheTimeFilled) {
  ServerThread server;
  Client client({server.path(), Millis{200}, -1});
  int ticks = 0;
  auto reply = client.call(api::ReadJobLog{"x", 0}, {Millis{20}, [&ticks] { ++ticks; }});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::timeout);
  EXPECT_GE(ticks, 1);
}

TEST(Client, IsInterrupted) {
  ServerThread server;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  net::Fd reading(ends[0]);
  net::Fd writing(ends[1]);
  Client client({server.path(), seconds(20), reading.get()});
  int ticks = 0;
  auto reply =
      client.call(api::ReadJobLog{"x", 0}, {Millis{5}, [&] {
                                              if (++ticks == 2) {
                                                ASSERT_EQ(::write(writing.get(), "x", 1), 1);
                                              }
                                            }});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::cancelled);
  EXPECT_EQ(client.follow(std::nullopt, [](const auto&) { return true; }).error().code,
            ErrorCode::cancelled);
}

TEST(Client, ConnectsAgainAfterARestart) {
  ServerThread server;
  Client client({server.path(), seconds(10), -1});
  ASSERT_TRUE(client.call(api::ListJobs{}));
  server.stop();
  EXPECT_EQ(client.call(api::ListJobs{}).error().code, ErrorCode::unavailable);
  server.start();
  EXPECT_TRUE(client.call(api::ListJobs{}));
}

TEST(Client, FollowsEvents) {
  ServerThread server;
  Client client({server.path(), seconds(10), -1});
  std::vector<std::uint64_t> seen;
  std::thread publisher([&server] {
    // Until the follower is there, events pass it by: the first it sees may be any.
    for (std::uint64_t n = 1; n <= 400; ++n) {
      server.publish(n);
      ::usleep(2000);
    }
  });
  auto done = client.follow(
      0,
      [&seen](const api::FleetEvent& event) {
        seen.push_back(event.number);
        return seen.size() < 3;
      },
      seconds(10));
  publisher.join();
  ASSERT_TRUE(done) << done.error().describe();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_LT(seen[0], seen[1]);
  EXPECT_LT(seen[1], seen[2]);
}

TEST(Client, FollowEndsInTime) {
  ServerThread server;
  Client client({server.path(), seconds(10), -1});
  auto done = client.follow(
      std::nullopt, [](const auto&) { return true; }, Millis{50});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::timeout);
}

}  // namespace
}  // namespace zed::http
