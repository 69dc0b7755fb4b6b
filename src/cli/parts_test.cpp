// The parts of the command line that take values and return values.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <unistd.h>

#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/completion.hpp"
#include "cli/dev_fleet.hpp"
#include "cli/table.hpp"
#include "cli/typed.hpp"
#include "cli/view.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

TEST(View, CountsColumnsAsATerminalDoes) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("größe"), 5U);
  EXPECT_EQ(display_width("模型"), 4U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);
  EXPECT_EQ(fitted("abcdef", 6), "abcdef");
  EXPECT_EQ(fitted("abcdef", 4), "abc…");
  EXPECT_EQ(fitted("模型模型", 4), "模…");
  EXPECT_EQ(fitted("abc", 0), "");
}

TEST(View, MakesEveryByteSafe) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = printable(std::string(1, static_cast<char>(byte)) + "x");
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.back(), 'x');
    for (char c : text)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f') << byte;
  }
}

TEST(View, LogLinesKeepColoursOnly) {
  EXPECT_EQ(printable_log("\x1b[1;31mred\x1b[0m\tx", true), "\x1b[1;31mred\x1b[0m\tx\x1b[0m");
  EXPECT_EQ(printable_log("\x1b[1;31mred\x1b[0m", false), "red");
  EXPECT_EQ(printable_log("\x1b[2Jx", true).find('\x1b'), std::string::npos);
  EXPECT_EQ(printable_log(" 10%\r 50%\r100%", true), "100%");
  EXPECT_EQ(printable_log("done\r", true), "done");
}

TEST(Table, RightAlignsNumbersAndLeavesOutWhatIsEmpty) {
  Table table({{"NAME"}, {"SIZE", Align::right}, {"NEVER"}});
  table.add({"a", "1 B", ""});
  table.add({"bcd", "100 B", ""});
  EXPECT_EQ(table.render({}), "NAME   SIZE\na       1 B\nbcd   100 B\n");
}

TEST(Table, ShrinksThenDropsToFit) {
  Table table({{"NAME"}, {"TEXT", Align::left, true}, {"EXTRA", Align::left, false, true}});
  table.add({"job", "a long text that may be cut", "extra"});
  View view;
  view.width = 30;
  EXPECT_EQ(table.render(view), "NAME  TEXT               EXTRA\njob   a long text that…  extra\n");
  view.width = 18;
  EXPECT_EQ(table.render(view), "NAME  TEXT\njob   a long text…\n");
}

TEST(Typed, Requirements) {
  auto str = [](const std::vector<std::string>& clauses) {
    auto read = parse_requirement(clauses);
    return read ? read->str() : "! " + read.error().message + " | " + read.error().hint;
  };
  EXPECT_EQ(str({"vram=48"}), "vram:48");
  EXPECT_EQ(str({"vram:48,gpus:2"}), "vram:48,gpus:2");
  EXPECT_EQ(str({"gpu=RTX 4090|A100", "gpus=2"}), "gpus:2,gpu:RTX 4090|A100");
  EXPECT_EQ(str({"vram=24GiB"}), "vram:24GiB");
  EXPECT_EQ(str({"vrma=48"}), "! \"vrma\" is no requirement | did you mean \"vram\"?");
  EXPECT_EQ(str({"vram=much"}).substr(0, 28), "! \"much\" is no value of vram");
  EXPECT_EQ(str({"vram=1", "vram=2"}), "! vram is required twice | say it once");
  EXPECT_EQ(str({"48"}), "! \"48\" is no requirement | write KEY=VALUE, like vram=48");
}

TEST(Typed, PreferencesTargetsAndProperties) {
  auto read = parse_preference({"gpu=RTX 4090", "node=server"});
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (Preference{{Wish::Kind::gpu, "RTX 4090"}, {Wish::Kind::node, "server"}}));
  EXPECT_EQ(parse_preference({"gpus=A100"}).error().hint, "did you mean \"gpu\"?");
  auto target = parse_job_at("finetune@epoch-20");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->job, "finetune");
  EXPECT_EQ(target->checkpoint, "@epoch-20");
  EXPECT_FALSE(parse_job_at("@epoch-20"));
  EXPECT_FALSE(parse_job_at("finetune@"));
  EXPECT_EQ(parse_property("a=b=c").value().second, "b=c");
  EXPECT_FALSE(parse_property("=b"));
  EXPECT_EQ(checkpoint_word("epoch-15"), "@epoch-15");
  EXPECT_EQ(checkpoint_word("start"), "start");
}

/// The command that asks for an operation: `model add` for model-add, where it is not called the
/// same.
std::string command_of(std::string_view operation, const std::set<std::string>& commands) {
  static const std::map<std::string_view, std::string> others = {{api::SetNodeDuty::tag, "drain"},
                                                                 {"tokens", "token list"},
                                                                 {api::ReadFile::tag, "cp"},
                                                                 {api::ExecTend::tag, "exec"}};
  if (auto other = others.find(operation); other != others.end()) return other->second;
  std::string command(operation);
  if (!commands.contains(command)) std::replace(command.begin(), command.end(), '-', ' ');
  return command;
}

TEST(Arguments, EveryOperationHasItsCommand) {
  std::set<std::string> commands;
  for (const CommandShape& shape : command_shapes())
    commands.insert(shape.path);
  for (const api::OperationInfo& operation : api::all_operations())
    EXPECT_TRUE(commands.contains(command_of(operation.name, commands)))
        << operation.name << " can be asked over HTTP and Erlang, and zedctl has no command for it";
}

template <class T> T command(const std::vector<std::string>& arguments) {
  auto read = read_arguments(arguments);
  if (const auto* said = std::get_if<Said>(&read)) ADD_FAILURE() << said->text;
  const auto& invocation = std::get<Invocation>(read);
  EXPECT_TRUE(std::holds_alternative<T>(invocation.command));
  return std::get<T>(invocation.command);
}

TEST(Arguments, Dispatch) {
  const auto read = command<DispatchCommand>({"dispatch", "finetune", "--prefer", "gpu=A100",
                                              "--fallback", "gpu=RTX 4090", "--wait", "--",
                                              "python", "x.py", "--json", "--lr", "-3"});
  EXPECT_EQ(read.job, "finetune");
  EXPECT_EQ(read.prefer, std::vector<std::string>{"gpu=A100"});
  EXPECT_EQ(read.fallback, std::vector<std::string>{"gpu=RTX 4090"});
  EXPECT_TRUE(read.wait);
  EXPECT_EQ(read.argv, (std::vector<std::string>{"python", "x.py", "--json", "--lr", "-3"}));
}

TEST(Arguments, OptionsStandBeforeOrAfterTheCommand) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--json", "--socket", "/s", "nodes", "-o", "wide"},
        std::vector<std::string>{"nodes", "-o", "wide", "--json", "--socket=/s"}}) {
    auto read = read_arguments(words);
    ASSERT_TRUE(std::holds_alternative<Invocation>(read));
    const Common& common = std::get<Invocation>(read).common;
    EXPECT_TRUE(common.json && common.wide);
    EXPECT_EQ(common.socket, "/s");
  }
}

TEST(Arguments, EachCommand) {
  EXPECT_EQ(command<RollbackCommand>({"rollback", "finetune@epoch-20", "--discard"}).target,
            "finetune@epoch-20");
  EXPECT_EQ(command<ResumeCommand>({"resume", "f", "--from", "@epoch-15", "--on", "ws"}).on, "ws");
  EXPECT_EQ(command<AddModelCommand>({"model", "add", "/x", "--name", "m", "--property", "a=b"})
                .properties,
            std::vector<std::string>{"a=b"});
  EXPECT_EQ(command<MatchCommand>({"match", "--requires", "vram=48", "--requires", "gpus=2"})
                .requires_.size(),
            2U);
  EXPECT_TRUE(command<LogsCommand>({"logs", "-f", "finetune"}).follow);
  EXPECT_EQ(command<EventsCommand>({"events", "--after", "7"}).after.value_or(0), 7U);
  EXPECT_EQ(command<DevKill>({"dev", "kill", "server"}).node, "server");
  EXPECT_EQ(command<DevUp>({"dev", "up", "p.json", "--dir", "/d"}).folder, "/d");
  EXPECT_EQ(std::get<api::SetNodeDuty>(command<Order>({"drain", "server"}).request).duty,
            api::NodeDuty::drain);
  EXPECT_EQ(std::get<api::WhyJob>(command<Look>({"why", "finetune"}).question).job, "finetune");
}

/// With each of its flags, because some commands want one of two.
TEST(Arguments, EveryCommandThatIsReadCanBeMade) {
  std::size_t made = 0;
  for (const CommandShape& shape : command_shapes()) {
    std::vector<std::string> words = split(shape.path, ' ');
    words.resize(words.size() + shape.positionals.size(), "a");
    for (const OptionShape& option : shape.described) {
      if (!option.value.empty()) continue;
      std::vector<std::string> with_flag = words;
      with_flag.push_back(option.names.back());
      EXPECT_NO_THROW({ made += read_arguments(with_flag).index() == 0 ? 1 : 0; })
          << join(with_flag, " ");
    }
  }
  EXPECT_GT(made, 100U);
  EXPECT_EQ(command<Order>({"expire", "jobs/f.1", "--never"}).request.index(),
            decltype(Order::request)(api::ExpireBranch{}).index());
  EXPECT_EQ(std::get<api::ExpireBranch>(
                command<Order>({"expire", "jobs/f.1", "--after", "2 days"}).request)
                .after,
            minutes(48 * 60));
}

TEST(Arguments, AWordThatIsNoCommandIsNamed) {
  const auto said = [](const std::vector<std::string>& words) {
    auto read = read_arguments(words);
    return std::holds_alternative<Said>(read) ? std::get<Said>(read).text : "nothing";
  };
  EXPECT_EQ(said({"dispach", "train", "--json"}),
            "error: zedctl has no command dispach\n  next: did you mean zedctl dispatch?\n");
  EXPECT_EQ(said({"frobnicate"}),
            "error: zedctl has no command frobnicate\n  next: zedctl --help lists what it has\n");
  EXPECT_EQ(said({"model", "remove", "x"}), "error: zedctl model has no command remove\n"
                                            "  next: zedctl model --help lists what it has\n");
  EXPECT_EQ(said({"--frobnicate"}),
            "error: zedctl has no option --frobnicate\n  next: zedctl --help lists what it has\n");
  EXPECT_EQ(said({"complete"}).find("complete-names"), std::string::npos) << "it is not for people";
}

TEST(Arguments, MistakesAreUsageErrors) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"frobnicate"},
                                                {"rollback"},
                                                {"match"},
                                                {"nodes", "--bogus"},
                                                {"logs", "x", "-n", "0"},
                                                {"completion", "csh"},
                                                {"nodes", "-o", "narrow"},
                                                {"expire", "jobs/f.1"},
                                                {"stop", "x", "--", "y"}}) {
    auto read = read_arguments(words);
    ASSERT_TRUE(std::holds_alternative<Said>(read));
    EXPECT_EQ(std::get<Said>(read).status, 1);
    EXPECT_FALSE(std::get<Said>(read).text.empty());
  }
  auto help = read_arguments({"rollback", "--help"});
  ASSERT_TRUE(std::holds_alternative<Said>(help));
  EXPECT_EQ(std::get<Said>(help).status, 0);
  EXPECT_NE(std::get<Said>(help).text.find("--discard"), std::string::npos);
}

TEST(Arguments, HaveNamesThatNewerCli11TakesToo) {
  // 2.4, of Debian 13 and Ubuntu 24.04, throws at others as soon as the program starts.
  for (const CommandShape& shape : command_shapes())
    for (const std::string& name : shape.positionals)
      EXPECT_EQ(name.find_first_of("=:{ "), std::string::npos) << shape.path << " " << name;
}

TEST(Completion, KnowsEveryCommandAndOption) {
  const auto shapes = command_shapes();
  EXPECT_GT(shapes.size(), 25U);
  EXPECT_TRUE(std::none_of(shapes.begin(), shapes.end(),
                           [](const CommandShape& s) { return s.path == "complete-names"; }));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    auto script = completion_script(shell, shapes);
    ASSERT_TRUE(script);
    for (const char* word : {"rollback", "discard", "checkpoints", "complete-names"})
      EXPECT_NE(script->find(word), std::string::npos) << shell << " " << word;
  }
  EXPECT_FALSE(completion_script("csh", shapes));
}

/// What a bash with the script would offer.
std::string offered(const std::string& words, int position) {
  const fs::path script =
      fs::temp_directory_path() / ("zed-completion-" + std::to_string(::getpid()));
  std::ofstream(script) << *completion_script("bash", command_shapes());
  const std::string line = "bash -c 'zedctl() { echo one two; }; source " + script.string() +
                           "; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(position) +
                           "; _zedctl; echo \"${COMPREPLY[*]}\"' 2>&1";
  std::array<char, 4096> buffer{};
  std::string text;
  FILE* pipe = ::popen(line.c_str(), "r");
  while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
    text += buffer.data();
  if (pipe != nullptr) ::pclose(pipe);
  fs::remove(script);
  return text;
}

TEST(Completion, WorksInBash) {
  EXPECT_EQ(offered("zedctl rollb", 1), "rollback\n");
  EXPECT_EQ(offered("zedctl logs \"\"", 2), "one two\n");
  EXPECT_EQ(offered("zedctl rollback --dis", 2), "--discard\n");
  EXPECT_EQ(offered("zedctl model \"\"", 2), "add show ls register alias rm\n");
  EXPECT_EQ(offered("zedctl resume x --on t", 4), "two\n");
  EXPECT_EQ(offered("zedctl completion f", 2), "fish\n");
}

TEST(DevFleet, APathIsOneWordOfAShell) {
  EXPECT_EQ(shell_word("/home/ada/.local/state/zed-dev/controller.sock"),
            "/home/ada/.local/state/zed-dev/controller.sock");
  EXPECT_EQ(shell_word("/tmp/my fleet/s"), "'/tmp/my fleet/s'");
  EXPECT_EQ(shell_word("/tmp/d'é/s"), "'/tmp/d'\\''é/s'");
  EXPECT_EQ(shell_word("/tmp/$HOME;x"), "'/tmp/$HOME;x'");
  EXPECT_EQ(shell_word("~/s"), "'~/s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(DevProfile, SaysWhatIsWrong) {
  const fs::path path =
      fs::temp_directory_path() / ("zed-profile-" + std::to_string(::getpid()) + ".json");
  auto said = [&path](const std::string& text) {
    std::ofstream(path) << text;
    auto read = read_profile(path);
    return read ? std::string("good") : read.error().describe();
  };
  EXPECT_EQ(said(R"({"schema":1,"nodes":[{"name":"a","pool":"tank","gpus":"rtx-4090"}]})"), "good");
  EXPECT_NE(said("{").find("read the profile"), std::string::npos);
  EXPECT_NE(said(R"({"schema":2})").find("schema"), std::string::npos);
  EXPECT_NE(said(R"({"schema":1,"nodes":[]})").find("nodes"), std::string::npos);
  EXPECT_NE(said(R"({"nodes":[{"name":"../a","gpus":"x"}]})").find("name"), std::string::npos);
  EXPECT_NE(
      said(R"({"nodes":[{"name":"a","gpus":"x"},{"name":"a","gpus":"x"}]})").find("two nodes"),
      std::string::npos);
  EXPECT_NE(said(R"({"nodes":[{"name":"a","pool":"../x","gpus":"x"}]})").find("pool of a"),
            std::string::npos);
  EXPECT_NE(said(R"({"nodes":[{"name":"a"}]})").find("gpus"), std::string::npos);
  EXPECT_NE(said(R"({"controller":{"host":"b"},"nodes":[{"name":"a","gpus":"x"}]})").find("host"),
            std::string::npos);
  fs::remove(path);
  DevFleet built_in = built_in_profile();
  EXPECT_TRUE(check_profile(built_in));
}

}  // namespace
}  // namespace zed::cli
