// A snapshot on its way by ssh: against a machine that is played by a few lines, and with the words
// that a real shell would read.

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.hpp"
#include "store/zfs/host_send.hpp"
#include "store/zfs/output.hpp"

namespace zed::store {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using zfs::Arguments;
using zfs::Output;

CheckpointId id_of(std::uint8_t n) {
  CheckpointId id;
  id.bytes.fill(n);
  return id;
}
const DatasetName model = DatasetName::parse("models/llama").value();

/// A store of one dataset, which sends "<snapshot name>" from what the token says on.
class OneDataset final : public env::Store {
public:
  Dataset dataset;
  std::vector<env::SendRequest> sends;
  std::string refused_token;  ///< of another stream

  OneDataset() {
    dataset.name = model;
    dataset.uuid.bytes.fill(9);
    dataset.properties = {{"uuid", dataset.uuid.str()},
                          {"type", "model"},
                          {"trained_on", "a100"},
                          {"held", "ours alone"},
                          {"note", "it's 50 % \\ done!\n"}};
    for (std::uint8_t n = 1; n <= 3; ++n) {
      Snapshot snapshot;
      snapshot.name = "v" + std::to_string(n);
      snapshot.id = id_of(n);
      snapshot.guid = n;
      snapshot.createtxg = 10U * n;
      snapshot.properties = {{"loss", "0.0023"}};
      dataset.snapshots.push_back(snapshot);
    }
  }

  env::StoreInfo info() const override { return {}; }
  Result<Dataset> inspect(const DatasetName&) override { return dataset; }
  Result<std::unique_ptr<env::SendStream>> send(const env::SendRequest& request) override {
    sends.push_back(request);
    if (!refused_token.empty() && request.resume_token == refused_token)
      return fail(ErrorCode::stale, "the receiver's token is of another stream");
    return std::make_unique<Text>(request.resume_token.empty() ? "all of it" : "the rest");
  }

  Result<std::vector<Dataset>> list() override { return no<std::vector<Dataset>>(); }
  Result<Changes> changes_since(const std::string&) override { return no<Changes>(); }
  Result<env::Space> space() override { return no<env::Space>(); }
  Status create(const DatasetName&, const Properties&) override { return no<void>(); }
  Status set(const DatasetName&, const PropertyChanges&) override { return no<void>(); }
  Status set_readonly(const DatasetName&, bool) override { return no<void>(); }
  Result<fs::path> open_live(const DatasetName&) override { return no<fs::path>(); }
  Result<fs::path> snapshot_path(const SnapshotName&) override { return no<fs::path>(); }
  Result<Snapshot> snapshot(const SnapshotName&, const Properties&) override {
    return no<Snapshot>();
  }
  Result<Snapshot> commit_checkpoint(const env::CommitRequest&) override { return no<Snapshot>(); }
  Status hold(const SnapshotName&, const std::string&) override { return no<void>(); }
  Status release(const SnapshotName&, const std::string&) override { return no<void>(); }
  Result<std::unique_ptr<env::ReceiveStream>> receive(const env::ReceiveRequest&) override {
    return no<std::unique_ptr<env::ReceiveStream>>();
  }
  Result<std::string> resume_token(const DatasetName&, const CheckpointId&) override {
    return no<std::string>();
  }
  Status abort_receive(const DatasetName&) override { return no<void>(); }
  Status rename(const DatasetName&, const DatasetName&) override { return no<void>(); }
  Status clone(const SnapshotName&, const DatasetName&, const Properties&) override {
    return no<void>();
  }
  Status promote(const DatasetName&) override { return no<void>(); }
  Status revert_live(const DatasetName&) override { return no<void>(); }
  Status destroy(const DatasetName&) override { return no<void>(); }
  Status destroy_snapshot(const SnapshotName&) override { return no<void>(); }

private:
  template <class T> static Result<T> no() { return fail(ErrorCode::internal, "nobody asks this"); }

  class Text final : public env::SendStream {
  public:
    explicit Text(std::string text) : text_(std::move(text)) {}
    Result<std::size_t> read(std::span<std::byte> buffer) override {
      const std::size_t n = std::min(buffer.size(), text_.size());
      std::copy_n(reinterpret_cast<const std::byte*>(text_.data()), n, buffer.data());
      text_.erase(0, n);
      return n;
    }
    Bytes total() const override { return Bytes{9}; }
    Bytes resumed_at() const override { return {}; }

  private:
    std::string text_;
  };
};

/// What a machine with OpenZFS and sshd does with the commands that it is sent.
struct Host {
  struct Snapshot {
    std::string word;
    std::uint64_t guid = 0;
    std::map<std::string, std::string> properties;
  };
  struct Dataset {
    std::map<std::string, std::string> properties;
    std::string token;
    std::vector<Snapshot> snapshots;
  };
  std::map<std::string, Dataset> datasets;
  std::vector<Arguments> asked;  ///< what `zfs` was called with
  std::vector<Arguments> ssh;    ///< and ssh
  std::vector<std::string> received;
  std::uint64_t arrives_as = 3;    ///< guid of what is received
  std::optional<Output> ssh_says;  ///< instead of everything
  bool cuts_the_stream = false;
  bool forgets_properties = false;

  /// The commands of a line, each without what comes before `zfs` and it.
  static std::vector<Arguments> commands_of(const std::string& line) {
    std::vector<Arguments> commands(1);
    for (std::size_t at = 0; at < line.size();) {
      EXPECT_EQ(line[at], '\'');
      const std::size_t end = line.find('\'', at + 1);
      commands.back().push_back(line.substr(at + 1, end - at - 1));
      const bool another = line.compare(end + 1, 4, " && ") == 0;
      if (another) commands.emplace_back();
      at = end + (another ? 5 : 2);
    }
    for (Arguments& words : commands) {
      EXPECT_EQ(words.at(0), "env");
      EXPECT_EQ(words.at(3), "zfs");
      words.erase(words.begin(), words.begin() + 4);
    }
    return commands;
  }

  /// All but the last `spared` of a line, up to the first that fails.
  Output run(const std::string& line, std::size_t spared = 0) {
    auto commands = commands_of(line);
    Output all{true, "", "", 0};
    for (std::size_t i = 0; i + spared < commands.size() && all.ok; ++i) {
      Output one = zfs(commands[i]);
      one.out = all.out + one.out;
      all = one;
    }
    return all;
  }

  Output zfs(const Arguments& words) {
    asked.push_back(words);
    const std::string& verb = words.at(0);
    const std::string target = words.back();
    const std::string name = target.substr(0, target.find('@'));
    auto found = datasets.find(name);
    if (verb == "create") {
      datasets[name];
      return {true, "", "", 0};
    }
    if (found == datasets.end())
      return {false, "", "cannot open '" + name + "': dataset does not exist\n", 1};
    if (verb == "get") return {true, get(words), "", 0};
    if (verb == "receive") {
      if (words.at(1) == "-A") found->second.token.clear();
      return {true, "", "", 0};
    }
    if (verb == "inherit") found->second.properties.erase(words.at(1));
    if (verb == "set" && !forgets_properties)
      for (std::size_t i = 1; i + 1 < words.size(); ++i)
        set(target, words[i]);
    return {true, "", "", 0};
  }

  void set(const std::string& target, const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    const std::size_t at = target.find('@');
    Dataset& dataset = datasets[target.substr(0, at)];
    auto* properties = &dataset.properties;
    if (at != std::string::npos)
      for (Snapshot& snapshot : dataset.snapshots)
        if (snapshot.word == target.substr(at + 1)) properties = &snapshot.properties;
    (*properties)[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }

  std::string get(const Arguments& words) {
    std::string text;
    auto row = [&text](const std::string& name, const std::string& property,
                       const std::string& value, const char* source) {
      text += name + "\t" + property + "\t" + value + "\t" + source + "\n";
    };
    const std::string target = words.back().substr(0, words.back().find('@'));
    const Dataset& dataset = datasets.at(target);
    row(target, "guid", "77", "-");
    row(target, "receive_resume_token", dataset.token.empty() ? "-" : dataset.token, "-");
    for (const auto& [key, value] : dataset.properties)
      row(target, key, value, "local");
    std::uint64_t txg = 100;
    for (const Snapshot& snapshot : dataset.snapshots) {
      const std::string name = target + "@" + snapshot.word;
      row(name, "guid", std::to_string(snapshot.guid), "-");
      row(name, "createtxg", std::to_string(++txg), "-");
      for (const auto& [key, value] : dataset.properties)
        if (!snapshot.properties.contains(key))
          row(name, key, value, ("inherited from " + target).c_str());
      for (const auto& [key, value] : snapshot.properties)
        row(name, key, value, "local");
    }
    return text;
  }

  Output receive(const Arguments& words, const std::string& bytes) {
    asked.push_back(words);
    received.push_back(bytes);
    const std::string target = words.back();
    const std::string name = target.substr(0, target.find('@'));
    Dataset& dataset = datasets[name];
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "-o" && words[i + 1].starts_with("com.zed:")) set(name, words[i + 1]);
    if (cuts_the_stream) {
      dataset.token = "1-abc";
      return {false, "", "Timeout, server elsewhere not responding.\n", 255};
    }
    dataset.token.clear();
    dataset.snapshots.push_back({target.substr(target.find('@') + 1), arrives_as, {}});
    return {true, "", "", 0};
  }
};

class ToHost final : public zfs::Commands {
public:
  explicit ToHost(Host& host) : host_(host) {}
  Result<Output> run(const Arguments& arguments, std::string_view) override {
    host_.ssh.push_back(arguments);
    if (host_.ssh_says) return *host_.ssh_says;
    return host_.run(arguments.back());
  }
  Result<std::unique_ptr<zfs::Child>> start(const Arguments& arguments, Pipe pipe) override {
    EXPECT_EQ(pipe, Pipe::to_it);
    host_.ssh.push_back(arguments);
    const Output before = host_.run(arguments.back(), 1);
    EXPECT_TRUE(before.ok) << before.err;
    return std::make_unique<Receiving>(host_, Host::commands_of(arguments.back()).back());
  }

private:
  class Receiving final : public zfs::Child {
  public:
    Receiving(Host& host, Arguments words) : host_(host), words_(std::move(words)) {}
    Result<std::size_t> read(std::span<std::byte>) override { return std::size_t{0}; }
    Status write(std::span<const std::byte> bytes) override {
      bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    Result<Output> finish() override { return host_.receive(words_, bytes_); }
    void kill() override {}

  private:
    Host& host_;
    Arguments words_;
    std::string bytes_;
  };
  Host& host_;
};

SendToHost to_host(std::uint8_t n = 3) {
  return {model,
          DatasetId{},
          id_of(n),
          "v" + std::to_string(n),
          "root@workstation",
          "tank/models/llama-finetune"};
}

class HostSends : public ::testing::Test {
protected:
  Result<HostSent> run(const SendToHost& wanted = to_host()) {
    HostSend send(store_, std::make_unique<ToHost>(host_));
    return send.run(wanted, [](Bytes, Bytes, Bytes) {});
  }
  Host::Dataset& there() { return host_.datasets["tank/models/llama-finetune"]; }
  Host::Dataset& has(std::vector<std::uint64_t> guids) {
    for (std::uint64_t guid : guids)
      there().snapshots.push_back({"v" + std::to_string(guid), guid, {}});
    return there();
  }

  OneDataset store_;
  Host host_;
};

TEST_F(HostSends, ASnapshotArrivesWithItsPropertiesAndThoseOfItsDataset) {
  auto sent = run();
  ASSERT_TRUE(sent) << sent.error().describe();
  EXPECT_EQ(sent->moved, Bytes{9});
  EXPECT_FALSE(sent->was_there);
  ASSERT_EQ(host_.received.size(), 1u);
  EXPECT_EQ(host_.received[0], "all of it");
  EXPECT_TRUE(host_.datasets.contains("tank/models")) << "its parent was made";
  auto& properties = there().properties;
  EXPECT_EQ(properties.at("com.zed:trained_on"), "a100");
  EXPECT_EQ(zfs::decode_value(properties.at("com.zed:note")), "it's 50 % \\ done!\n");
  EXPECT_FALSE(properties.contains("com.zed:held"));
  EXPECT_FALSE(properties.contains("com.zed:sync")) << "nothing is unfinished";
  ASSERT_EQ(there().snapshots.size(), 1u);
  EXPECT_EQ(there().snapshots[0].properties.at("com.zed:loss"), "0.0023");
  EXPECT_EQ(there().snapshots[0].properties.at("com.zed:id"), id_of(3).str());
  EXPECT_EQ(store_.sends.at(0).kind, StreamKind::zfs);
  EXPECT_FALSE(store_.sends.at(0).base);
  auto again = run();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(again->moved, Bytes{});
}

TEST_F(HostSends, ReceivesAsAReplicaAndNeverByForce) {
  ASSERT_TRUE(run());
  for (const Arguments& words : host_.asked) {
    EXPECT_THAT(words, ::testing::Not(Contains("-F")));
    if (words[0] != "receive") continue;
    EXPECT_THAT(words, Contains("readonly=on"));
    EXPECT_THAT(words, Contains("setuid=off"));
    EXPECT_THAT(words, Contains("-u"));
    EXPECT_THAT(words, Contains("-s"));
  }
}

TEST_F(HostSends, SshAsksNobodyAndTrustsNoNewKey) {
  ASSERT_TRUE(run());
  for (const Arguments& words : host_.ssh) {
    EXPECT_EQ(words[0], "ssh");
    EXPECT_THAT(words, Contains("BatchMode=yes"));
    EXPECT_THAT(words, Contains("StrictHostKeyChecking=yes"));
    ASSERT_GE(words.size(), 3u);
    EXPECT_EQ(words[words.size() - 3], "--") << "what follows is no option";
    EXPECT_EQ(words[words.size() - 2], "root@workstation");
  }
}

TEST_F(HostSends, GoesOnFromTheNewestThatBothHave) {
  has({1, 2}).properties["com.zed:uuid"] = store_.dataset.uuid.str();
  ASSERT_TRUE(run());
  EXPECT_EQ(store_.sends.at(0).base, id_of(2));
}

TEST_F(HostSends, ABookmarkIsABaseToo) {
  has({7});
  store_.dataset.bookmarks.push_back({"workstation", id_of(7), 7, 25});
  ASSERT_TRUE(run());
  EXPECT_EQ(store_.sends.at(0).base, id_of(7));
}

TEST_F(HostSends, WhatACutLeftIsGoneOnWith) {
  host_.cuts_the_stream = true;
  auto cut = run();
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::unavailable) << cut.error().describe();
  host_.cuts_the_stream = false;
  ASSERT_TRUE(run());
  EXPECT_EQ(store_.sends.back().resume_token, "1-abc");
  EXPECT_EQ(host_.received.back(), "the rest");
}

TEST_F(HostSends, ATokenOfAnEarlierStreamOfOursIsDropped) {
  there().token = "1-old";
  there().properties["com.zed:sync"] = id_of(1).str();
  store_.refused_token = "1-old";
  ASSERT_TRUE(run());
  EXPECT_THAT(host_.asked, Contains(::testing::ElementsAre("receive", "-A", to_host().target)));
}

TEST_F(HostSends, WhatIsNotOursIsLeftAlone) {
  there().token = "1-strange";
  EXPECT_EQ(run().error().code, ErrorCode::busy);
  there().token.clear();
  EXPECT_EQ(run().error().code, ErrorCode::exists) << "files of a person, without a snapshot";
  has({99});
  EXPECT_EQ(run().error().code, ErrorCode::conflict);
  there().snapshots = {{"v3", 98, {}}};
  EXPECT_EQ(run().error().code, ErrorCode::conflict) << "the same name, another snapshot";
  there().snapshots = {{"v3", 3, {}}};
  EXPECT_EQ(run(to_host(2)).error().code, ErrorCode::conflict) << "it has a newer one";
  there().properties["com.zed:uuid"] = id_of(5).str();
  EXPECT_EQ(run().error().code, ErrorCode::conflict) << "another dataset of Zed's";
  EXPECT_TRUE(host_.received.empty());
}

TEST_F(HostSends, PropertiesAreReadBack) {
  host_.forgets_properties = true;
  auto sent = run();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::io);
  host_.forgets_properties = false;
  EXPECT_TRUE(run()->was_there) << "and set by the next run";
}

TEST_F(HostSends, CancelledItSendsNothing) {
  HostSend send(store_, std::make_unique<ToHost>(host_));
  send.cancel();
  EXPECT_EQ(send.run(to_host(), [](Bytes, Bytes, Bytes) {}).error().code, ErrorCode::cancelled);
  EXPECT_TRUE(host_.received.empty());
}

TEST_F(HostSends, NamesAreCheckedBeforeAnyProgramSeesThem) {
  SendToHost wanted = to_host();
  for (const char* bad : {"-oProxyCommand=x", "root@-x", "a b", "a;b", "@host", "root@", "a@b@c"}) {
    wanted.destination = bad;
    EXPECT_EQ(run(wanted).error().code, ErrorCode::invalid) << bad;
  }
  wanted = to_host();
  for (const char* bad : {"tank", "tank/'x'", "tank/$(reboot)", "/tank/x", "tank/../x"}) {
    wanted.target = bad;
    EXPECT_EQ(run(wanted).error().code, ErrorCode::invalid) << bad;
  }
  EXPECT_TRUE(host_.ssh.empty());
  wanted = to_host();
  wanted.snapshot = id_of(8);
  EXPECT_EQ(run(wanted).error().code, ErrorCode::not_found);
}

struct SshSays {
  const char* text;
  int status;
  ErrorCode code;
  const char* hint;
};

TEST_F(HostSends, EachComplaintHasItsCodeAndWayOut) {
  using enum ErrorCode;
  const SshSays cases[] = {
      {"Host key verification failed.\r\n", 255, refused, "ssh root@workstation once by hand"},
      {"root@workstation: Permission denied (publickey,password).\r\n", 255, refused,
       "ssh-copy-id root@workstation"},
      {"ssh: Could not resolve hostname workstation: Name or service not known\r\n", 255, not_found,
       "address"},
      {"ssh: connect to host workstation port 22: Connection refused\r\n", 255, unavailable,
       "sshd"},
      {"ssh: connect to host workstation port 22: Connection timed out\r\n", 255, unavailable, ""},
      {"", 255, unavailable, "again"},
      {"env: 'zfs': No such file or directory\n", 127, unsupported, "install OpenZFS"},
      {"cannot receive: out of space\n", 1, no_space, ""},
      {"cannot create 'tank/models': permission denied\n", 1, refused, "zfs allow"},
  };
  for (const SshSays& c : cases) {
    host_.ssh_says = Output{false, "", c.text, c.status};
    auto failed = run();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, c.code) << c.text << failed.error().describe();
    EXPECT_THAT(failed.error().hint, HasSubstr(c.hint)) << c.text;
  }
}

TEST(RemoteWords, AreTheSameInEveryShell) {
  EXPECT_EQ(quoted_remote({"zfs", "set", "com.zed:a=b c"}), "'zfs' 'set' 'com.zed:a=b c'");
  const std::string odd = "it's \\ $(reboot) `x` !! \"q\" % \t";
  const std::string encoded = encode_remote_value(odd);
  EXPECT_EQ(encoded.find_first_of("'\\!"), std::string::npos);
  EXPECT_EQ(zfs::decode_value(encoded), odd);
}

TEST(RemoteWords, ReachTheOtherSidesProgramThroughARealShell) {
  // A program in ssh's place that gives its last word to a shell, as sshd does.
  const fs::path folder =
      fs::temp_directory_path() / ("zed-host-send-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const fs::path program = folder / "ssh";
  std::ofstream(program) << "#!/bin/sh\nfor last; do :; done\nexec /bin/sh -c \"$last\"\n";
  ::chmod(program.c_str(), 0755);
  auto commands = zfs::make_system_commands();
  const std::string value = encode_remote_value("it's \\ $(reboot) `x` !! \"q\" * ~ # & ; |");
  auto output = commands->run(
      {program.string(), "-T", "--", "host", quoted_remote({"printf", "%s.", "zfs", value})}, {});
  fs::remove_all(folder);
  ASSERT_TRUE(output) << output.error().describe();
  EXPECT_EQ(output->out, "zfs." + value + ".");
  EXPECT_EQ(output->status, 0);
}

}  // namespace
}  // namespace zed::store
