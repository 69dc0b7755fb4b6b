deploy :fleet, pool: "tank" do
  model :a do
    dataset "shared/x"
  end
  job :b do
    dataset "shared/x"
  end
  job :c do
    dataset "shared/x/inner"
  end
end
