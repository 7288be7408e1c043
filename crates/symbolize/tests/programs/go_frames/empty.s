// Lets a function without a body be declared in main.go.
