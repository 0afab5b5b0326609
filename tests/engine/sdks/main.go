// Generates a package's SDK in the languages whose generators are no longer part of the engine: C# and Java.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	java "github.com/pulumi/pulumi-java/pkg/codegen/java"
	"github.com/pulumi/pulumi/pkg/v3/codegen/dotnet"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sdks SCHEMA dotnet|java FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func generate(schemaFile, language, folder string) error {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		return err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	pkg, err := schema.ImportSpec(spec, nil)
	if err != nil {
		return err
	}
	var files map[string][]byte
	switch language {
	case "dotnet":
		// It fetches a picture for the package, which is not what is tried here.
		logo := httptest.NewServer(http.NotFoundHandler())
		defer logo.Close()
		pkg.LogoURL = logo.URL
		files, err = dotnet.GeneratePackage("tests/engine", pkg, nil, nil)
	case "java":
		files, err = java.GeneratePackage("tests/engine", pkg, nil, false)
	default:
		err = fmt.Errorf("no generator for %s", language)
	}
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
