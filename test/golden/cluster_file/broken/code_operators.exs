deploy :fleet, pool: "tank" do
  job :train do
    priority 1 + 2
    retries - 1
    run ["a"] ++ ["b"]
    copies 2 * 2
    shell "a" <> "b"
  end
end
