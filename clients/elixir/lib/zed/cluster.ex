defmodule Zed.Cluster do
  @moduledoc """
  A Zed fleet from a shell: every operation of the controller as a function.

      iex> Zed.Cluster.connect(:"zed_controller@server")
      {:ok, :zed_controller@server}
      iex> Zed.Cluster.nodes_matching(requires: [vram: 48])
      [:zed@macbook, :zed@server]

  The calls go to the controller by Erlang distribution; nothing of a shell is ever run there.
  Unless a function says otherwise it gives `{:ok, map}` or `{:error, kind, text}`. In a map, keys
  and the declared names of nodes, jobs and models are atoms; everything else is a binary. Times are
  milliseconds since 1970 (UTC), sizes bytes, `nil` is unknown.

  Nodes are named as Erlang nodes (`:"zed@server"`) or by their bare name (`:server`, `"server"`),
  jobs by atom or string, checkpoints as `"@epoch-15"`.
  """

  alias Zed.Cluster.Watcher

  @type error :: {:error, atom, String.t()}
  @type answer :: {:ok, map} | error
  @type name :: atom | String.t()

  # As long as zedctl waits for an order; what takes longer is followed by events.
  @patience :timer.minutes(10)
  @import_patience :timer.hours(24)
  @protocol 1

  # ---- the controller

  @doc """
  Connects this shell's node to the controller's and remembers it.

  Without a name: the one that is connected already, else `$ZED_CONTROLLER_NODE`. `cookie:` is the
  cluster's, for this connection only. The shell has to be a node itself: `iex --sname me …`.
  """
  @spec connect(node | nil, keyword) :: {:ok, node} | error
  def connect(controller \\ nil, options \\ [])

  def connect(nil, options) do
    with {:ok, controller} <- find_controller(), do: connect(controller, options)
  end

  def connect(controller, options) when is_atom(controller) do
    if cookie = options[:cookie], do: Node.set_cookie(controller, to_atom(cookie))

    case controller == node() or Node.connect(controller) do
      true ->
        :persistent_term.put({__MODULE__, :controller}, controller)
        {:ok, controller}

      :ignored ->
        {:error, :unavailable, "this shell is no node: start it with iex --sname NAME"}

      false ->
        {:error, :unavailable,
         "#{controller} does not answer: is it up, does its host resolve, is the cookie the cluster's?"}
    end
  end

  @doc "The controller that calls go to."
  @spec controller() :: {:ok, node} | error
  def controller do
    case :persistent_term.get({__MODULE__, :controller}, nil) do
      nil -> connect()
      controller -> {:ok, controller}
    end
  end

  defp find_controller do
    connected =
      Enum.filter(Node.list(:hidden), &String.starts_with?(to_string(&1), "zed_controller@"))

    case {connected, System.get_env("ZED_CONTROLLER_NODE")} do
      {[controller], _} ->
        {:ok, controller}

      {_, named} when is_binary(named) ->
        {:ok, to_atom(named)}

      _ ->
        {:error, :unavailable,
         ~s|no controller is known: Zed.Cluster.connect(:"zed_controller@HOST")|}
    end
  end

  @doc """
  Any operation of the controller by its name, `arguments` a map or keyword list.

      Zed.Cluster.call(:jobs, all: true)
  """
  @spec call(atom, map | keyword, timeout) :: answer
  def call(operation, arguments \\ %{}, timeout \\ @patience) do
    with {:ok, controller} <- controller() do
      request = {:zed, @protocol, __MODULE__, operation, [Map.new(arguments)]}
      GenServer.call({:zed, controller}, request, timeout)
    end
  catch
    :exit, reason -> failure(reason)
  end

  defp failure({{:nodedown, controller}, _}),
    do: {:error, :unavailable, "#{controller} cannot be reached"}

  defp failure({:timeout, _}),
    do: {:error, :timeout, "no answer in time: whether it was done is unknown, events tell"}

  defp failure({:noproc, _}),
    do: {:error, :unavailable, "no controller runs on that node"}

  defp failure(reason),
    do: {:error, :unavailable, "the controller went away: #{inspect(reason)}"}

  # ---- the fleet

  @doc "The nodes that have joined, as Erlang nodes: `[:\"zed@server\", …]`."
  @spec nodes() :: [node] | error
  def nodes do
    with {:ok, %{nodes: rows}} <- call(:nodes) do
      for %{joined: true, node: row} <- rows, do: erlang_node(row.name)
    end
  end

  @doc "The fleet in a few lines."
  @spec status() :: answer
  def status, do: call(:status)

  @doc "The same as `status/0`."
  @spec info() :: answer
  def info, do: status()

  @doc "What is known of one node: hardware, store, health, what runs there."
  @spec info(name) :: answer
  def info(node) do
    wanted = bare(node)

    with {:ok, %{nodes: rows}} <- call(:nodes) do
      case Enum.find(rows, &(to_string(&1.node.name) == wanted)) do
        nil -> {:error, :not_found, "there is no node #{wanted}"}
        row -> {:ok, row}
      end
    end
  end

  @doc """
  The nodes that can take something now, best first.

      Zed.Cluster.nodes_matching(requires: [vram: 48])
      Zed.Cluster.nodes_matching(requires: [vram: 20, gpus: 2], prefer: [gpu: "A100"])

  `match/1` also says why the others cannot.
  """
  @spec nodes_matching(keyword) :: [node] | error
  def nodes_matching(options) do
    with {:ok, %{matches: matches}} <- match(options),
         do: Enum.map(matches, &erlang_node(&1.node))
  end

  @doc "Who can hold a requirement, and why each of the others cannot."
  @spec match(keyword) :: answer
  def match(options) do
    call(:match, %{
      requirement: requirement(options[:requires] || []),
      prefer: preference(options[:prefer] || [])
    })
  end

  @doc "All models and who holds them."
  @spec models() :: answer
  def models, do: call(:models)

  @doc "What is moving."
  @spec transfers() :: answer
  def transfers, do: call(:transfers)

  @doc "No new jobs on a node."
  @spec cordon(name) :: answer
  def cordon(node), do: call(:node_duty, node: bare(node), duty: :cordon)

  @doc "Takes a node back."
  @spec uncordon(name) :: answer
  def uncordon(node), do: call(:node_duty, node: bare(node), duty: :uncordon)

  @doc "No new jobs on a node, and what runs there moves."
  @spec drain(name) :: answer
  def drain(node), do: call(:node_duty, node: bare(node), duty: :drain)

  # ---- jobs

  @doc "Jobs; `all: true` for finished and only declared ones too."
  @spec jobs(keyword) :: answer
  def jobs(options \\ []), do: call(:jobs, options)

  @doc """
  Submits a declared job to the best node there is.

  `prefer:` and `fallback:` are rankings of wishes, `[gpu: "A100"]`; given here they replace those of
  the cluster file. `argv:` replaces its command. `again: true, from: "@epoch-20"`: a new run of a
  job that succeeded.
  """
  @spec dispatch(name, keyword) :: answer
  def dispatch(job, options \\ []) do
    wishes =
      for key <- [:prefer, :fallback], options[key] != nil, into: %{} do
        {key, preference(options[key])}
      end

    %{job: to_string(job), uuid: options[:uuid] || submit_id()}
    |> Map.merge(Map.new(Keyword.take(options, [:argv, :again])))
    |> Map.merge(if(options[:from], do: %{from: checkpoint(options[:from])}, else: %{}))
    |> Map.merge(wishes)
    |> then(&call(:dispatch, &1))
  end

  @doc """
  Runs a job again from a checkpoint, here or on another machine.

      Zed.Cluster.resume_job(:train_001, from: "@epoch-15", on: :"zed@workstation")
  """
  @spec resume_job(name, keyword) :: answer
  def resume_job(job, options \\ []) do
    call(:resume, %{
      job: to_string(job),
      from: checkpoint(options[:from] || ""),
      on: bare(options[:on] || ""),
      force: options[:force] || false
    })
  end

  @doc """
  Begins a new timeline at a checkpoint; the newer one is kept as a branch.

  Options: `discard: true` destroys it instead, `hold: true` does not resume the job,
  `dry_run: true` only says what would be left, `force: true` although its home is away.
  """
  @spec rollback(name, String.t(), keyword) :: answer
  def rollback(job, checkpoint, options \\ []) do
    options
    |> Keyword.take([:discard, :hold, :dry_run, :force])
    |> Map.new()
    |> Map.merge(%{job: to_string(job), checkpoint: checkpoint(checkpoint)})
    |> then(&call(:rollback, &1))
  end

  @doc "A job's checkpoints, its branches, and who has them."
  @spec checkpoints(name) :: answer
  def checkpoints(job), do: on_job(:checkpoints, job)

  @doc "Why a job is where it is, or runs nowhere."
  @spec why(name) :: answer
  def why(job), do: on_job(:why, job)

  @doc "Checkpoint if the job can, then stop it; it can be resumed."
  @spec stop(name) :: answer
  def stop(job), do: on_job(:stop, job)

  @doc "Stops a job for good."
  @spec cancel(name) :: answer
  def cancel(job), do: on_job(:cancel, job)

  @doc "Asks a running job for a checkpoint now."
  @spec checkpoint_job(name) :: answer
  def checkpoint_job(job), do: on_job(:checkpoint, job)

  @doc "What a job wrote, from `offset:`; negative: that many lines from the end (-100)."
  @spec logs(name, keyword) :: answer
  def logs(job, options \\ []),
    do: call(:logs, job: to_string(job), offset: options[:offset] || -100)

  defp on_job(operation, job), do: call(operation, job: to_string(job))

  # ---- the cluster file

  @doc """
  What applying a cluster file would change.

  `source` is its path, or its text if that has more than one line. `folder:` is what `file` and
  `code` in a text are relative to.
  """
  @spec plan(String.t(), keyword) :: answer
  def plan(source, options \\ []) do
    with {:ok, file} <- read(source, options), do: call(:plan, file)
  end

  @doc """
  Makes a cluster file the declared fleet.

  As `plan/2`; with `expected_revision:` it is refused as stale if the fleet moved on since.
  `from_node:` says whose disk `file` and `code` name, the controller's machine otherwise.
  """
  @spec apply(String.t(), keyword) :: answer
  def apply(source, options \\ []) do
    extra = Map.new(Keyword.take(options, [:expected_revision, :from_node]))
    with {:ok, file} <- read(source, options), do: call(:apply, Map.merge(file, extra))
  end

  defp read(source, options) do
    if String.contains?(source, "\n") do
      {:ok, %{text: source, folder: Path.expand(options[:folder] || ".")}}
    else
      path = Path.expand(source)

      case File.read(path) do
        {:ok, text} -> {:ok, %{text: text, folder: Path.dirname(path)}}
        {:error, reason} -> {:error, :io, "read #{path}: #{:file.format_error(reason)}"}
      end
    end
  end

  @doc "Imports a file or folder of `node:`'s machine (default the controller's) as a model."
  @spec add_model(name, String.t(), keyword) :: answer
  def add_model(name, path, options \\ []) do
    options
    |> Keyword.take([:version, :properties])
    |> Map.new()
    |> Map.merge(%{name: to_string(name), path: path, node: bare(options[:node] || "")})
    |> Map.put(:requirement, requirement(options[:requires] || []))
    |> then(&call(:model_add, &1, @import_patience))
  end

  # ---- events

  @doc """
  What happened: `after:` the events of a higher number, `limit:` the newest so many (1 to 1000).
  """
  @spec events(keyword) :: answer
  def events(options \\ []), do: call(:events, options)

  @doc """
  From now on the fleet's events are messages to the calling process:

      {:zed_event, %{number: 17, at: …, kind: "job", subject: "job finetune", text: "…"}}

  With `after: n` those that were missed come first. Goes on when the controller restarts: then
  `{:zed_watch, {:away, text}}` and `{:zed_watch, :back}` say so, and nothing is lost or told twice.
  Ends with the calling process, or by `unwatch/1`.
  """
  @spec watch(keyword) :: {:ok, pid} | error
  def watch(options \\ []) do
    with {:ok, controller} <- controller(), do: Watcher.start(controller, self(), options[:after])
  end

  @doc "Ends what `watch/1` began."
  @spec unwatch(pid) :: :ok
  def unwatch(watcher), do: Watcher.stop(watcher)

  # ---- how things are written

  @doc false
  def requirement(clauses) when is_binary(clauses), do: clauses

  def requirement(clauses) do
    Enum.map_join(clauses, ",", fn {key, value} -> "#{key}:#{requirement_value(value)}" end)
  end

  defp requirement_value(values) when is_list(values), do: Enum.join(values, "|")
  defp requirement_value(value), do: to_string(value)

  @doc false
  def preference(wishes) do
    for {kind, values} <- wishes, value <- List.wrap(values) do
      %{kind: kind, value: if(kind == :node, do: bare(value), else: to_string(value))}
    end
  end

  @doc false
  def bare(name) do
    case to_string(name) do
      "zed@" <> host -> host
      other -> other
    end
  end

  defp checkpoint(""), do: ""
  defp checkpoint(word) when word in ["start", :start], do: "start"
  defp checkpoint(word), do: "@" <> String.trim_leading(to_string(word), "@")

  # Members of the fleet, as many as there are machines: a bounded number of atoms.
  defp erlang_node(name), do: to_atom("zed@#{name}")
  defp to_atom(text), do: text |> to_string() |> String.to_atom()

  # Sent again under the same id, a submit stays one job.
  defp submit_id, do: Base.encode16(:crypto.strong_rand_bytes(16), case: :lower)
end
