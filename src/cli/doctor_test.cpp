// `doctor` and `adopt`: what they say, and the real zedctl with a controller that a test scripts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "cli/render.hpp"
#include "cli/testing.hpp"

namespace zed::cli {
namespace {

using testing::Child;
using ::testing::ContainsRegex;
using testing::FakeController;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::TempFolder;
using Level = Finding::Level;

TEST(DoctorText, ALineAFindingAndWhatToTypeBelowIt) {
  const Findings findings{
      {{Level::ok, "zfs", "OpenZFS 2.1.11", ""},
       {Level::warn, "pool tank", "88 % full, 120 GiB of 1.00 TiB free", "zedctl prune JOB"},
       {Level::fail, "port 4370", "another program listens there", "ss -ltnp 'sport = :4370'"},
       {Level::ok, "gpu 0", "NVIDIA\x1b[2J RTX 4090", ""}}};
  EXPECT_EQ(render(findings, {}), "ok    zfs        OpenZFS 2.1.11\n"
                                  "warn  pool tank  88 % full, 120 GiB of 1.00 TiB free\n"
                                  "      -> zedctl prune JOB\n"
                                  "fail  port 4370  another program listens there\n"
                                  "      -> ss -ltnp 'sport = :4370'\n"
                                  "ok    gpu 0      NVIDIA\xEF\xBF\xBD[2J RTX 4090\n"
                                  "1 failure, 1 warning\n");
  EXPECT_EQ(render(Findings{{{Level::ok, "zfs", "OpenZFS 2.1.11", ""}}}, {}),
            "ok    zfs  OpenZFS 2.1.11\nnothing is wrong\n");
  View coloured;
  coloured.colour = true;
  EXPECT_THAT(render(findings, coloured), HasSubstr("\x1b["));
}

api::AdoptReply preview() {
  api::AdoptReply reply;
  reply.node = "server";
  reply.dataset = "models/llama";
  reply.steps = {"set com.zed:type=model", "rename stuff/llama to models/llama"};
  reply.warnings = {"its size and format are not known: it is empty"};
  reply.dry_run = true;
  return reply;
}

TEST(AdoptText, SaysWhatItWouldDoAndWhatItDid) {
  api::AdoptReply reply = preview();
  EXPECT_EQ(render(reply, {}), "would adopt models/llama on server:\n"
                               "  set com.zed:type=model\n"
                               "  rename stuff/llama to models/llama\n"
                               "! its size and format are not known: it is empty\n");
  reply.dry_run = false;
  reply.uuid = "0900";
  EXPECT_THAT(render(reply, {}), HasSubstr("adopted models/llama on server, 0900\n!"));
  reply.steps.clear();
  EXPECT_THAT(render(reply, {}), HasSubstr("is Zed's already\n"));
}

TEST(NodesText, AnAgentOfAnOrdinaryUserHoldsCopiesOnly) {
  api::NodesReply reply;
  api::NodeRow row;
  row.joined = true;
  row.node.name = NodeName::parse("laptop").value();
  row.node.facts.pool = "data";
  row.node.facts.store = StoreKind::zfs;
  reply.nodes.push_back(row);
  EXPECT_THAT(render(reply, {}), Not(HasSubstr("copies only")));
  reply.nodes[0].node.facts.may_run_jobs = false;
  EXPECT_THAT(render(reply, {}), HasSubstr("zfs data, copies only"));
}

class ThisMachine : public ::testing::Test {
protected:
  Outcome run(std::vector<std::string> arguments, const std::string& input = "",
              bool terminal = false) const {
    Child::Options options;
    options.environment = {{"ZED_CONTROLLER", controller_.socket()}, {"TERM", "xterm"}};
    options.input = input;
    options.terminal = terminal;
    return Child(ZEDCTL, std::move(arguments), std::move(options)).finish();
  }
  void clock_is_off_by(Millis difference) {
    controller_.on("status", [difference](const api::Request&) -> Result<Value> {
      api::StatusReply reply;
      reply.controller = "server";
      reply.nodes = {{"up", 4}};
      reply.at = WallTime{wall_now().ms + difference.value};
      return api::encode_reply(reply);
    });
  }

  TempFolder folder_;
  FakeController controller_{(folder_ / "c.sock").string()};
};

TEST_F(ThisMachine, TheDoctorReachesTheControllerAndComparesClocks) {
  clock_is_off_by({});
  // A pool of that name is nowhere: what is found of this machine itself differs by machine.
  Outcome well = run({"doctor", "--state", folder_.path().string()});
  EXPECT_THAT(well.out, HasSubstr("on server, 4 nodes"));
  EXPECT_THAT(well.out, HasSubstr("as the controller's"));
  // The way there and back is not counted: half a minute more, so that the minute is the same.
  clock_is_off_by(minutes(5) + seconds(30));
  EXPECT_THAT(run({"doctor"}).out, ContainsRegex("5 min [0-9]+ s behind the controller's"));
  clock_is_off_by(Millis{-(minutes(90) + seconds(30)).value});
  Outcome far = run({"doctor", "--json"});
  EXPECT_EQ(far.status, 1);
  auto value = parse_json(far.out);
  ASSERT_TRUE(value) << far.out;
  auto findings = from_value<Findings>(*value);
  ASSERT_TRUE(findings);
  EXPECT_EQ(findings->findings.back().level, Level::fail);
  EXPECT_THAT(findings->findings.back().what, HasSubstr("1 h 30 min ahead of"));
}

TEST_F(ThisMachine, TheDoctorNeedsNoController) {
  controller_.on("status", [](const api::Request&) -> Result<Value> {
    return fail(ErrorCode::unavailable, "it is starting");
  });
  Outcome said = run({"doctor"});
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.out, HasSubstr("it is starting"));
}

TEST_F(ThisMachine, AnAdoptionIsShownAndAgreedTo) {
  controller_.on("adopt", [](const api::Request& request) -> Result<Value> {
    api::AdoptReply reply = preview();
    reply.dry_run = std::get<api::Adopt>(request).dry_run;
    return api::encode_reply(reply);
  });
  Outcome shown = run({"adopt", "tank/stuff/llama", "--as", "model", "llama", "--dry-run"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("would adopt"));
  Outcome refused = run({"adopt", "tank/stuff/llama", "--to", "models/llama"}, "n\n", true);
  EXPECT_EQ(refused.status, 5);
  EXPECT_THAT(refused.err, HasSubstr("would adopt"));
  for (const auto& asked : controller_.requests<api::Adopt>())
    EXPECT_TRUE(asked.dry_run);
  Outcome done = run({"adopt", "tank/stuff/llama", "--as", "model", "llama"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("adopted models/llama"));
  const api::Adopt last = controller_.requests<api::Adopt>().back();
  EXPECT_EQ(last.dataset, "tank/stuff/llama");
  EXPECT_EQ(last.as, "model");
  EXPECT_EQ(last.name, "llama");
  EXPECT_FALSE(last.dry_run);
}

}  // namespace
}  // namespace zed::cli
