defmodule Zed.MixProject do
  use Mix.Project

  def project do
    [
      app: :zed,
      version: "0.1.0",
      elixir: "~> 1.14",
      description: "A Zed fleet from an Elixir shell or application",
      package: [licenses: ["Apache-2.0"]],
      deps: []
    ]
  end

  def application, do: [extra_applications: [:logger, :crypto]]
end
