package cells

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Wishes are the partitions that members of a custom assignor want, uneven as no client's own assignor would do it.
var Wishes = []string{"5,0", "1,3,4", "2"}

// Indexes of a wish.
func Indexes(wish string) (indexes []int32) {
	for word := range strings.SplitSeq(wish, ",") {
		indexes = append(indexes, int32(Got(strconv.Atoi(word))))
	}
	return indexes
}

// IsSame compares without order.
func IsSame(one, other []int32) bool {
	return len(one) == len(other) && isWithin(one, other)
}

// ExpectWithin is for a member that kept what it had.
func ExpectWithin(part, whole []int32) {
	if !isWithin(part, whole) {
		panic(fmt.Errorf("%v is not within %v: something was moved without need", part, whole))
	}
}

func isWithin(part, whole []int32) bool {
	return !slices.ContainsFunc(part, func(index int32) bool { return !slices.Contains(whole, index) })
}
