deploy :one do
end

deploy :two do
end
