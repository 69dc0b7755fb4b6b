Code.require_file("fake_controller.ex", __DIR__)

defmodule Zed.ClusterTest do
  use ExUnit.Case

  alias Zed.FakeController

  setup context do
    FakeController.stop()
    {:ok, _} = FakeController.start(context[:answers] || %{})
    {:ok, _} = Zed.Cluster.connect(node())
    on_exit(&FakeController.stop/0)
  end

  defp asked(fun) do
    result = fun.()
    {List.last(FakeController.asked()), result}
  end

  test "the vision's calls ask what they say" do
    {{:match, arguments}, _} = asked(fn -> Zed.Cluster.nodes_matching(requires: [vram: 48]) end)
    assert arguments == %{requirement: "vram:48", prefer: []}

    {{:dispatch, arguments}, {:ok, _}} =
      asked(fn ->
        Zed.Cluster.dispatch(:finetune_job,
          prefer: [gpu: "A100"],
          fallback: [gpu: "RTX 4090"]
        )
      end)

    assert %{job: "finetune_job", uuid: uuid} = arguments
    assert arguments.prefer == [%{kind: :gpu, value: "A100"}]
    assert arguments.fallback == [%{kind: :gpu, value: "RTX 4090"}]
    assert uuid =~ ~r/^[0-9a-f]{32}$/

    {{:resume, arguments}, {:ok, _}} =
      asked(fn ->
        Zed.Cluster.resume_job(:train_001,
          from: "@epoch-15",
          # different machine!
          on: :zed@workstation
        )
      end)

    assert arguments == %{job: "train_001", from: "@epoch-15", on: "workstation", force: false}

    {{:sync, arguments}, {:ok, _}} =
      asked(fn ->
        Zed.ZFS.Replicate.sync_to_remote(
          "nvme/models/llama-finetune@v1",
          "root@workstation",
          "tank/models/llama-finetune"
        )
      end)

    assert arguments.snapshot == "nvme/models/llama-finetune@v1"
    assert arguments.destination == "root@workstation"
    assert arguments.dataset == "tank/models/llama-finetune"
  end

  test "rankings, nodes and checkpoints may be written in several ways" do
    {{:dispatch, arguments}, _} =
      asked(fn ->
        Zed.Cluster.dispatch("a",
          prefer: [gpu: ["A100", "H100"], node: :zed@server],
          argv: ["train", "-v"]
        )
      end)

    assert arguments.prefer == [
             %{kind: :gpu, value: "A100"},
             %{kind: :gpu, value: "H100"},
             %{kind: :node, value: "server"}
           ]

    assert arguments.argv == ["train", "-v"]

    {{:rollback, arguments}, _} =
      asked(fn -> Zed.Cluster.rollback(:a, "epoch-20", hold: true, dry_run: true) end)

    assert arguments == %{job: "a", checkpoint: "@epoch-20", hold: true, dry_run: true}
    {{:resume, arguments}, _} = asked(fn -> Zed.Cluster.resume_job(:a, from: :start) end)
    assert arguments.from == "start"
    {{:node_duty, arguments}, _} = asked(fn -> Zed.Cluster.drain(:zed@server) end)
    assert arguments == %{node: "server", duty: :drain}

    {{:match, arguments}, _} =
      asked(fn -> Zed.Cluster.match(requires: [vram: "24GiB", gpu: ["A100", "H100"], gpus: 2]) end)

    assert arguments.requirement == "vram:24GiB,gpu:A100|H100,gpus:2"
  end

  @tag answers: %{
         nodes:
           {:ok,
            %{
              nodes: [
                %{joined: true, node: %{name: :server, status: :up}},
                %{joined: true, node: %{name: "laptop-9", status: :up}},
                %{joined: false, node: %{name: :macbook, status: :lost}}
              ]
            }},
         match: {:ok, %{matches: [%{node: :server}, %{node: "laptop-9"}], refusals: []}}
       }
  test "nodes are Erlang nodes, whether declared or not" do
    assert Zed.Cluster.nodes() == [:zed@server, :"zed@laptop-9"]
    assert Zed.Cluster.nodes_matching(requires: [vram: 48]) == [:zed@server, :"zed@laptop-9"]
    assert {:ok, %{node: %{name: :server}}} = Zed.Cluster.info(:zed@server)
    assert {:ok, %{joined: false}} = Zed.Cluster.info("macbook")
    assert {:error, :not_found, "there is no node desk"} = Zed.Cluster.info(:desk)
  end

  @tag answers: %{why: {:error, :not_found, "there is no job x"}, match: {:error, :busy, "b"}}
  test "errors are {:error, kind, text}" do
    assert Zed.Cluster.why(:x) == {:error, :not_found, "there is no job x"}
    assert Zed.Cluster.nodes_matching(requires: [vram: 1]) == {:error, :busy, "b"}
    FakeController.stop()
    assert {:error, :unavailable, "no controller runs on that node"} = Zed.Cluster.jobs()
    assert {:error, :unavailable, text} = Zed.Cluster.connect(:zed_controller@nowhere)
    assert text =~ "iex --sname"
  end

  test "a file is sent with its folder, a text with the one that is named" do
    path = Path.join(System.tmp_dir!(), "zed-#{System.unique_integer([:positive])}.exs")
    File.write!(path, "deploy :x do\nend\n")
    on_exit(fn -> File.rm(path) end)
    {{:plan, arguments}, _} = asked(fn -> Zed.Cluster.plan(path) end)
    assert arguments == %{text: "deploy :x do\nend\n", folder: Path.dirname(path)}

    {{:apply, arguments}, _} =
      asked(fn -> Zed.Cluster.apply("deploy :x do\nend", folder: "/f", expected_revision: 3) end)

    assert arguments == %{text: "deploy :x do\nend", folder: "/f", expected_revision: 3}
    assert {:error, :io, text} = Zed.Cluster.plan("/no/such.exs")
    assert text =~ "no such file"
  end

  describe "watching" do
    @describetag answers: %{newest: 3}

    test "events are messages, none lost and none twice" do
      {:ok, _} = Zed.Cluster.watch(after: 1)
      assert_receive {:zed_event, %{number: 2}}
      assert_receive {:zed_event, %{number: 3}}
      FakeController.tell(3)
      FakeController.tell(4)
      assert_receive {:zed_event, %{number: 4, kind: "job"}}
      refute_received {:zed_event, _}
    end

    test "without a number only what is new comes" do
      {:ok, watcher} = Zed.Cluster.watch()
      FakeController.tell(4)
      assert_receive {:zed_event, %{number: 4}}
      :ok = Zed.Cluster.unwatch(watcher)
      refute Process.alive?(watcher)
      assert :ok = Zed.Cluster.unwatch(watcher)
      refute_received _
    end

    test "a controller that restarts is said, and goes on from 1" do
      {:ok, _} = Zed.Cluster.watch(after: 3)
      FakeController.stop()
      assert_receive {:zed_watch, {:away, _}}
      {:ok, _} = FakeController.start(%{newest: 2})
      assert_receive {:zed_watch, :back}, 5_000
      assert_receive {:zed_event, %{number: 1}}
      assert_receive {:zed_event, %{number: 2}}
      FakeController.tell(3)
      assert_receive {:zed_event, %{number: 3}}
    end

    test "it ends with the process that watches" do
      test = self()

      {pid, monitor} =
        spawn_monitor(fn ->
          {:ok, watcher} = Zed.Cluster.watch()
          send(test, {:watcher, watcher})
        end)

      assert_receive {:watcher, watcher}
      assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}
      other = Process.monitor(watcher)
      assert_receive {:DOWN, ^other, :process, ^watcher, _}
    end
  end

  test "a watch that cannot begin is an error" do
    FakeController.stop()
    assert {:error, :unavailable, _} = Zed.Cluster.watch()
  end
end
