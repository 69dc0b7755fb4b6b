deploy :fleet, pool: "tank" do
  job :train do
    env %{A: "1"}
    after {:a, :b}
    requires <<1>>
  end
end
