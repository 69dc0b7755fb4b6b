deploy :fleet, pool: "tank" do
  model :"llama@2" do
    file "llama.gguf"
  end

  job :train do
    model :"llama@"
    run "true"
  end

  job :other do
    model :"llama@2@3"
    run "true"
  end
end
