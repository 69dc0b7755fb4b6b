defmodule Zed.DSL do
  @moduledoc """
  A cluster file as an Elixir module.

      defmodule MyCluster.GPU do
        use Zed.DSL

        deploy :gpu_cluster, pool: "tank" do
          node :workstation do
            gpu "RTX 4090", vram: 24
          end
        end
      end

      MyCluster.GPU.plan()
      MyCluster.GPU.apply()

  The block is data: nothing in it is run, here or there. The controller reads the file's own text
  (it has the one parser of the language), so what it says of a line is true of the file's line. A
  module that was typed into a shell has no file: its block is sent as Elixir would print it.

  The module gets `plan/0`, `plan/1`, `apply/0`, `apply/1` (options as in `Zed.Cluster.plan/2` and
  `Zed.Cluster.apply/2`), and `text/0`.
  """

  defmacro __using__(_options) do
    quote do
      import Zed.DSL, only: [deploy: 2, deploy: 3]
    end
  end

  @doc "Declares the fleet; once in a module."
  defmacro deploy(name, options), do: define(__CALLER__, [name, options])
  defmacro deploy(name, options, block), do: define(__CALLER__, [name, options, block])

  defp define(caller, arguments) do
    if Module.get_attribute(caller.module, :zed_deploy) do
      raise CompileError,
        file: caller.file,
        line: caller.line,
        description: "a second `deploy` in one module: one file declares one fleet"
    end

    Module.put_attribute(caller.module, :zed_deploy, true)
    {text, folder} = source(caller, arguments)

    quote do
      @external_resource unquote(caller.file)

      @doc "The text that `plan/1` and `apply/1` send."
      def text, do: unquote(text)

      @doc "What applying this file would change."
      def plan(options \\ []) do
        Zed.Cluster.plan(text(), Keyword.put_new(options, :folder, unquote(folder)))
      end

      @doc "Makes this file the declared fleet."
      def apply(options \\ []) do
        Zed.Cluster.apply(text(), Keyword.put_new(options, :folder, unquote(folder)))
      end
    end
  end

  defp source(caller, arguments) do
    case File.read(caller.file) do
      {:ok, text} -> {text, Path.dirname(Path.expand(caller.file))}
      {:error, _} -> {printed(arguments), File.cwd!()}
    end
  end

  # One line would be taken for a path: a block's text always has more.
  defp printed(arguments), do: Macro.to_string({:deploy, [], arguments}) <> "\n"
end
