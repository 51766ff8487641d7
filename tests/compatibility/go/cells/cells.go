// Package cells is what the Go drivers share: arguments in, one JSON line per feature out (see ../../matrix.py).
package cells

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Patience is how long a feature may take.
const Patience = 40 * time.Second

const featuresAtOnce = 4

// Scene is one feature's own topic, whose name is its group's too.
type Scene struct {
	Bootstrap []string
	Topic     string
}

// Feature plays one feature; what it says may be looked at from the other side.
type Feature func(scene Scene) (said map[string]any, err error)

// Main plays the features that the arguments name: bootstrap, prefix of the topics, features with commas between.
func Main(features map[string]Feature) {
	names := make(chan string)
	var workers sync.WaitGroup
	var printing sync.Mutex
	for range featuresAtOnce {
		workers.Go(func() {
			for name := range names {
				line := play(name, features[name])
				printing.Lock()
				fmt.Println(line)
				printing.Unlock()
			}
		})
	}
	for name := range strings.SplitSeq(os.Args[3], ",") {
		names <- name
	}
	close(names)
	workers.Wait()
}

func play(name string, feature Feature) string {
	started := time.Now()
	said, err := tried(feature, Scene{strings.Split(os.Args[1], ","), os.Args[2] + "-" + name})
	line := struct {
		Feature string         `json:"feature"`
		OK      bool           `json:"ok"`
		Why     string         `json:"why,omitempty"`
		Said    map[string]any `json:"said"`
		MS      int64          `json:"ms"`
	}{name, err == nil, "", said, time.Since(started).Milliseconds()}
	if err != nil {
		line.Why = err.Error()
	}
	text, _ := json.Marshal(line)
	return string(text)
}

// A client that hangs counts as failed; the others go on.
func tried(feature Feature, scene Scene) (map[string]any, error) {
	type outcome struct {
		said map[string]any
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if problem := recover(); problem != nil {
				done <- outcome{nil, fmt.Errorf("%v", problem)}
			}
		}()
		said, err := feature(scene)
		done <- outcome{said, err}
	}()
	select {
	case result := <-done:
		return result.said, result.err
	case <-time.After(Patience + 20*time.Second):
		return nil, fmt.Errorf("did not come to an end")
	}
}

// Must stops the feature where something did not work.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Got is a value that must be there.
func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// ExpectEqual compares by what they look like.
func ExpectEqual(got, wanted any, what string) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		panic(fmt.Errorf("%s: %v, not %v", what, got, wanted))
	}
}

// Until looks again and again.
func Until(what string, holds func() bool) {
	for deadline := time.Now().Add(Patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			panic(fmt.Errorf("did not happen: %s", what))
		}
	}
}

// Values are word-0, word-1, ...
func Values(word string, count int) []string {
	values := make([]string, count)
	for i := range values {
		values[i] = fmt.Sprintf("%s-%d", word, i)
	}
	return values
}
