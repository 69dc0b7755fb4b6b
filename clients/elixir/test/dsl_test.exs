Code.require_file("fake_controller.ex", __DIR__)

defmodule Zed.DSLTest do
  use ExUnit.Case

  alias Zed.FakeController

  @examples Path.expand("../../../examples", __DIR__)
  @valid Path.expand("../../../test/golden/cluster_file/valid", __DIR__)
  @vision Path.join(@valid, "vision.exs")

  setup do
    FakeController.stop()
    {:ok, _} = FakeController.start()
    {:ok, _} = Zed.Cluster.connect(node())
    on_exit(&FakeController.stop/0)
  end

  defp load(path) do
    [{module, _}] = Code.compile_file(path)

    on_exit(fn ->
      :code.purge(module)
      :code.delete(module)
    end)

    module
  end

  test "the vision's module compiles as it is, and sends its own text" do
    module = load(@vision)
    assert module == MyCluster.GPU
    assert {:ok, _} = module.plan()
    assert {:ok, _} = module.apply(expected_revision: 7)
    text = File.read!(@vision)
    folder = Path.dirname(@vision)

    assert FakeController.asked() == [
             plan: %{text: text, folder: folder},
             apply: %{text: text, folder: folder, expected_revision: 7}
           ]
  end

  test "so do the examples" do
    for path <- Path.wildcard(@examples <> "/*.exs") do
      module = load(path)
      assert module.text() == File.read!(path)
    end
  end

  test "nothing in the block is run" do
    module =
      Code.compile_string("""
      defmodule NotRun do
        use Zed.DSL
        deploy :x do
          raise "it ran"
          node :a, pool: System.halt(1)
        end
      end
      """)
      |> hd()
      |> elem(0)

    assert module.text() =~ "deploy"
  end

  test "a module without a file sends its block, and all that it declares" do
    [{typed, _}] =
      Code.compile_string("""
      defmodule Typed do
        use Zed.DSL

        deploy :typed, pool: "tank" do
          node :a do
            gpu "RTX 4090", vram: 24
          end

          job :j, do: run(["a", "b"])
        end
      end
      """)

    assert {:ok, quoted} = Code.string_to_quoted(typed.text())
    assert {:deploy, _, [:typed, [pool: "tank"], [do: {:__block__, _, [_, _]}]]} = quoted
    assert String.contains?(typed.text(), "\n"), "one line would be taken for a path"
  end

  test "a second deploy in one module is refused where it stands" do
    assert_raise CompileError, ~r/a second `deploy`/, fn ->
      Code.compile_string("""
      defmodule Twice do
        use Zed.DSL
        deploy :a do
        end
        deploy :b do
        end
      end
      """)
    end
  end

  test "the exported formatter leaves cluster files as people write them" do
    {options, _} = Code.eval_file(Path.expand("../.formatter.exs", __DIR__))
    locals = options[:export][:locals_without_parens]
    assert locals == options[:locals_without_parens]

    format = fn text ->
      IO.iodata_to_binary(Code.format_string!(text, locals_without_parens: locals)) <> "\n"
    end

    for path <- Path.wildcard(@examples <> "/*.exs"),
        text = File.read!(path),
        do: assert(format.(text) == text)

    # Its comments are moved above their lines; its calls stay as they are.
    text = File.read!(@vision)
    refute String.contains?(text <> format.(text), "(\"")
    assert format.(text) =~ ~s|  gpu "M3 Max", vram: 64, type: :unified\n|
  end

  test "the formatter knows every verb of the language" do
    {options, _} = Code.eval_file(Path.expand("../.formatter.exs", __DIR__))
    known = Keyword.keys(options[:locals_without_parens])
    page = File.read!(Path.expand("../../../src/spec/verbs.cpp", __DIR__))

    verbs =
      Regex.scan(~r/\{"([a-z_]+)",\s+Place::/, page) |> Enum.map(&String.to_atom(Enum.at(&1, 1)))

    assert length(verbs) > 20
    assert Enum.uniq(verbs) -- known == [:defmodule, :use]
  end
end
